import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { DevOptions } from '../../../src/adapters/cli/local-verbs.js';
import { settingNames, settings } from '../../../src/domain/config/model.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { run } from '../../support/cli-rig.js';
import { tempFolder } from '../../support/temp-folder.js';

const says = (text: string) => expect.stringContaining(text);

describe('what is mistyped', () => {
  test.each([
    ['a verb', ['aply'], "unknown command 'aply'\n(Did you mean apply?)"],
    ['an option', ['get', '--namespce', 'x'], "unknown option '--namespce'\n(Did you mean --namespace?)"],
    ['a setting', ['dev', '--metric-listen', 'x'], "unknown option '--metric-listen'\n(Did you mean --metrics-listen?)"],
    ['a format', ['get', '-o', 'xml'], 'Allowed choices are table, json, yaml'],
    ['a kind', ['get', 'servce'], 'unknown kind servce; did you mean service?'],
    ['a kind like none', ['describe', 'pod'], 'unknown kind pod; the kinds are Service, Endpoints'],
    ['a reference', ['get', 'service/a/b'], 'expected KIND/NAME, found service/a/b'],
    ['a name twice', ['get', 'service/a', 'b'], 'expected service/a or a kind and a name, found both'],
    ['labels', ['get', '-l', '=x'], 'expected terms such as a=b'],
    ['too much', ['get', 'svc', 'a', 'b'], 'too many arguments'],
    ['nothing to apply', ['apply'], "required option '-f, --filename <path>' not specified"],
    ['nothing to watch', ['dev', '--watch'], '--watch needs --apply'],
    ['no folder', ['status', '--data-dir', ''], 'expected a folder'],
  ])('%s is told on standard error, with code 2', async (_, args, message) => {
    expect(await run(args, { env: { HOLDFAST_DATA_DIR: '/absent' } })).toEqual({ code: 2, out: '', err: says(message) });
  });

  test('nothing at all is help on standard error', async () => {
    expect(await run([])).toEqual({ code: 2, out: '', err: says('Usage: holdfast') });
  });
});

describe('what asks nobody', () => {
  test.each([
    [['--help'], 'Usage: holdfast [options] [command]'],
    [['get', '--help'], 'Usage: holdfast get [options] [kind] [name]'],
    [['help', 'apply'], 'Usage: holdfast apply'],
    [['--version'], '1.2.3\n'],
    [['version'], 'holdfast 1.2.3\n'],
    [['version', '-o', 'json'], '{\n  "version": "1.2.3"\n}\n'],
    [['version', '-o', 'yaml'], 'version: 1.2.3\n'],
  ])('%j', async (args, text) => {
    expect(await run(args)).toEqual({ code: 0, out: says(text), err: '' });
  });

  test('the help of dev says what each setting takes and what it is when it is not given', async () => {
    const text = (await run(['dev', '--help'])).out.replace(/\s+/g, ' ');
    for (const part of [
      '--ready-timeout <duration> how long a start waits for readiness, such as 500ms, 30s or 5m (default: 30s)',
      '--outbox-capacity <records> how many records the outbox holds (default: 4096)',
      '(default: 127.192.0.0/16)',
      '--metrics-listen <address:port> where the metrics are served, or off (default: 127.0.0.1:9193)',
    ])
      expect(text).toContain(part);
    const ofDev = settingNames.filter((name) => settings[name].of.includes('dev'));
    expect(text.match(/\(default: /g)).toHaveLength(ofDev.length + 2);
    expect(text).not.toContain('--server-listen-l1');
  });

  test.each([['dev'], ['apply'], ['delete'], ['get'], ['top'], ['restore']])(
    'the help of %s does not say that what is not given is off',
    async (verb) => {
      expect((await run([verb, '--help'])).out).not.toMatch(/default:\s+(false|\[\])/);
    },
  );

  test('dev gets its options and every setting that was given as a flag', async () => {
    const seen: DevOptions[] = [];
    const dev = async (_: unknown, options: DevOptions) => {
      seen.push(options);
      return 0 as const;
    };
    await run(['dev'], { local: { dev } });
    const flags = ['--log-level', 'debug', '--dataplane-connect-timeout', '1s', '--vip-range', 'x', '--labels', 'a=b'];
    await run(['dev', '--data-dir', 'd', '--root', '/r', '--config', 'c', '--apply', 'a', '--apply', 'b', '--watch', ...flags], {
      local: { dev },
    });
    const none = { dataDir: undefined, root: undefined, config: undefined, apply: [], watch: false, flags: {} };
    const given = { logLevel: 'debug', connectTimeoutMs: '1s', vipRange: 'x', labels: 'a=b' };
    expect(seen).toEqual([none, { dataDir: 'd', root: '/r', config: 'c', apply: ['a', 'b'], watch: true, flags: given }]);
  });

  test('restore gets what it is told', async () => {
    const seen: unknown[] = [];
    const restore = async (_: unknown, options: unknown) => {
      seen.push(options);
      return 0 as const;
    };
    await run(['restore', 'copy', '--list', '--data-dir', 'd'], { local: { restore } });
    expect(seen).toEqual([{ dataDir: 'd', copy: 'copy', list: true, force: false, output: 'table' }]);
    const etcd = ['--etcd', 'http://a:1', '--etcd-cluster', 'c', '--etcd-ca', 'r', '--etcd-cert', 'p', '--etcd-key', 'k'];
    await run(['restore', '--backup', 'f', ...etcd, '--force'], { local: { restore } });
    const given = { etcd: 'http://a:1', etcdCluster: 'c', etcdCa: 'r', etcdCert: 'p', etcdKey: 'k', force: true };
    expect(seen[1]).toMatchObject({ backup: 'f', list: false, ...given });
  });
});

describe('failures', () => {
  test('a start that failed says what to mend', async () => {
    const cause = new AgentError('log.corrupt', { problem: 'page 7' });
    const dev = () => Promise.reject(new AgentError('agent.start_failed', { problem: 'log-store did not start' }, { cause }));
    expect(await run(['dev'], { local: { dev } })).toEqual({
      code: 1,
      out: '',
      err: `error: agent.start_failed: log-store did not start\n  what to do: ${cause.remedy}\n`,
    });
  });

  test('what nobody foresaw is one line', async () => {
    const dev = () => Promise.reject(new Error('EACCES: permission denied'));
    expect(await run(['dev'], { local: { dev } })).toEqual({ code: 1, out: '', err: 'error: EACCES: permission denied\n' });
  });
});

describe('a daemon that is not there', () => {
  test.each([['status'], ['get'], ['top'], ['events'], ['watch'], ['describe', 'svc'], ['delete', 'svc', 'a']])(
    '%s names the socket and what to do, with code 3',
    async (...args) => {
      const dataDir = await tempFolder();
      const ran = await run([...args, '--data-dir', dataDir]);
      expect(ran).toEqual({ code: 3, out: '', err: says(`no daemon answers at ${dataDir}/admin/admin.sock`) });
      expect(ran.err).toContain(
        'what to do: start the daemon (`holdfast dev`, `server` or `agent`), or name its data directory with --data-dir',
      );
    },
  );

  test('whom a verb asks: the option, else the variable', async () => {
    const env = { HOLDFAST_DATA_DIR: '/of/variable' };
    expect((await run(['status'], { env })).err).toContain('/of/variable/admin/admin.sock');
    expect((await run(['status', '--data-dir', '/of/option'], { env })).err).toContain('/of/option/admin/admin.sock');
    expect((await run(['status', '--data-dir', `/${'long/'.repeat(50)}`])).code).toBe(3);
  });

  test('one that does not answer can be interrupted', async () => {
    const dataDir = await tempFolder();
    await mkdir(join(dataDir, 'admin'));
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(join(dataDir, 'admin/admin.sock'), resolve));
    onTestFinished(() => void silent.close());
    const abort = new AbortController();
    const running = run(['get', '--data-dir', dataDir], { signal: abort.signal });
    await sleep(100);
    abort.abort(new Error('SIGINT'));
    expect(await running).toEqual({ code: 1, out: '', err: 'error: interrupted\n' });
  });
});
