import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createConnection, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { tempFolder } from '../../support/temp-folder.js';
import { canMakeCertificates, throwawayCertificate } from '../../support/throwaway-certificate.js';

const holdfast = join(import.meta.dirname, '../../../bin/holdfast');
const service = (name: string) =>
  `apiVersion: holdfast/v1\nkind: Service\nmetadata: { name: ${name} }\nspec: { ports: [{ port: 80 }] }\n---\n`;

/** A process of the real program; what it wrote so far is in `out` and `err`. */
function start(args: readonly string[], { cwd }: { readonly cwd?: string } = {}) {
  const env = { PATH: process.env.PATH };
  const child = spawn(holdfast, args, { stdio: ['ignore', 'pipe', 'pipe'], env, ...(cwd === undefined ? {} : { cwd }) });
  const seen = { child, out: '', err: '' };
  child.stdout.on('data', (chunk: Buffer) => {
    seen.out += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    seen.err += chunk.toString();
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return seen;
}

async function finish(started: ReturnType<typeof start>) {
  if (started.child.exitCode === null && started.child.signalCode === null) await once(started.child, 'close');
  return { code: started.child.exitCode, out: started.out, err: started.err };
}

const run = (...args: readonly string[]) => finish(start(args));
const until = (seen: () => string, text: string) => expect.poll(seen, { timeout: 15_000 }).toContain(text);

/** `holdfast dev` that has said that it is ready. */
async function dev(dataDir: string, ...args: readonly string[]) {
  const daemon = start(['dev', '--data-dir', dataDir, '--metrics-listen', 'off', ...args]);
  await until(() => daemon.err, 'is ready (dev)');
  return daemon;
}

describe('holdfast dev', () => {
  test('SIGHUP reads the configuration again: what is live applies, the rest is told, what is wrong changes nothing', async () => {
    const dataDir = await tempFolder();
    const config = join(dataDir, 'holdfast.yaml');
    await writeFile(config, 'logLevel: warn\n');
    const daemon = await dev(dataDir);
    const reload = async (text: string, expected: string) => {
      await writeFile(config, text);
      daemon.child.kill('SIGHUP');
      await until(() => daemon.out, expected);
    };
    await reload(
      'logLevel: debug\ndataplane: { connectTimeout: 500ms, threads: 1 }\n',
      '"changed":["logLevel","dataplane.connectTimeout"]',
    );
    expect(daemon.out).toContain('dataplane.threads changed; it takes effect after a restart');
    await reload('logLevel: debug\nlogLevl: x\n', 'holdfast.yaml:2: logLevl: unknown key, did you mean logLevel?');
    for (let time = 0; time < 5; time++) daemon.child.kill('SIGHUP');
    daemon.child.kill('SIGTERM');
    expect((await finish(daemon)).code).toBe(0);
  });

  test('SIGHUP does not end one that has not finished starting, nor one that stops', async () => {
    const dataDir = await tempFolder();
    const daemon = start(['dev', '--data-dir', dataDir, '--metrics-listen', 'off']);
    // Made after the configuration was read and before anything runs.
    await expect.poll(() => existsSync(join(dataDir, 'node-identity.json')), { timeout: 15_000, interval: 1 }).toBe(true);
    daemon.child.kill('SIGHUP');
    await until(() => daemon.err, 'is ready (dev)');
    daemon.child.kill('SIGTERM');
    // At once: in the last millisecond of a process Node has given its handlers back.
    daemon.child.kill('SIGHUP');
    const { code } = await finish(daemon);
    expect([code, daemon.child.signalCode]).toEqual([0, null]);
  });

  test('the first signal lets connections end, a second one does not wait for them', async () => {
    const dataDir = await tempFolder();
    const backend = createServer((connection) => connection.write('hello'));
    await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void backend.close());
    const { port } = backend.address() as AddressInfo;
    const manifest = join(await tempFolder(), 'a.yaml');
    const spec = `ports: [{ port: 80 }], endpoints: [{ address: 127.0.0.1, port: ${port} }]`;
    await writeFile(manifest, service('a').replace('ports: [{ port: 80 }]', spec));
    const daemon = await dev(dataDir, '--apply', manifest);
    const { out } = await run('get', 'svc', 'a', '-o', 'json', '--data-dir', dataDir);
    const [host, listening] = JSON.parse(out).status.ports[0].listen.split(':');
    const connection = createConnection(Number(listening), host).on('error', () => {});
    expect(String((await once(connection, 'data'))[0])).toBe('hello');
    daemon.child.kill('SIGTERM');
    await until(() => daemon.out, 'agent stops');
    await sleep(300);
    expect(daemon.child.exitCode).toBeNull();
    daemon.child.kill('SIGTERM');
    expect((await finish(daemon)).code).toBe(130);
    connection.destroy();
  });

  test('a signal while it starts stops it, and is no failure', async () => {
    const dataDir = await tempFolder();
    const daemon = start(['dev', '--data-dir', dataDir, '--metrics-listen', 'off']);
    await expect.poll(async () => (await readdir(dataDir)).includes('lock'), { interval: 2, timeout: 15_000 }).toBe(true);
    daemon.child.kill('SIGTERM');
    expect((await finish(daemon)).code).toBe(0);
  });

  test('a broken configuration is refused by line, before anything is made', async () => {
    const folder = await tempFolder();
    const config = join(folder, 'mine.yaml');
    await writeFile(config, 'logLevel: info\nmetrics:\n  listen: 9193\n');
    const { code, out, err } = await run('dev', '--data-dir', join(folder, 'data'), '--config', config);
    expect([code, out]).toEqual([1, '']);
    expect(err).toContain(
      `error: config.invalid: ${config}:3: metrics.listen: expected address:port on loopback, or off, found 9193`,
    );
    expect(await readdir(folder)).toEqual(['mine.yaml']);
  });

  test.each([
    ['/proc/x/y', 'cannot be made: there is a part of the path where nobody can make a folder (ENOENT)'],
    ['/proc/version/x', 'cannot be used: a part of the path is no folder (ENOTDIR)'],
    ['/proc/version', 'it is no folder'],
  ])('a data directory %s that cannot be is refused', async (dataDir, problem) => {
    const remedy = 'name a folder that this user may make and write in with --data-dir or HOLDFAST_DATA_DIR';
    const err = `error: agent.data_dir_unusable: the data directory ${dataDir}: ${problem}\n  what to do: ${remedy}\n`;
    expect(await run('dev', '--data-dir', dataDir)).toEqual({ code: 1, out: '', err });
  });

  // Root may write nearly everywhere; in which way these two refuse depends on the user and on the container.
  test.each([
    ['/sys/x', 'made'],
    ['/proc', 'used'],
  ])('a data directory %s that this user may not make or write in is refused', async (dataDir, what) => {
    const { code, out, err } = await run('dev', '--data-dir', dataDir);
    expect([code, out]).toEqual([1, '']);
    expect(err).toMatch(
      new RegExp(`^error: agent\\.data_dir_unusable: the data directory ${dataDir}: cannot be ${what}: .*\\(E[A-Z]+\\)\\n`),
    );
  });

  test('a damaged log is one readable error with the command that mends it', async () => {
    const dataDir = join(await tempFolder(), 'with space');
    const first = await dev(dataDir);
    first.child.kill('SIGTERM');
    await finish(first);
    const log = join(dataDir, 'log.db');
    await writeFile(log, 'garbage');
    const problem = `log.corrupt: ${log}: it does not begin as a log`;
    const refused = async (remedy: string) =>
      expect(await run('dev', '--data-dir', dataDir, '--metrics-listen', 'off')).toEqual({
        code: 1,
        out: '',
        err: `error: agent.start_failed: log-store did not start: ${problem}\n  what to do: ${remedy}\n`,
      });
    const elsewhere = `run \`holdfast restore --data-dir '${dataDir}' COPY\` with one that you keep elsewhere`;
    const anew = `move all but node-identity.json out of ${dataDir}, start again and apply your manifests`;
    await refused(`there is no intact copy here: ${elsewhere}, or ${anew}`);
    await writeFile(log, '');
    await rm(`${log}.head`);
    await rm(log);
    const second = await dev(dataDir);
    second.child.kill('SIGTERM');
    await finish(second);
    await copyFile(log, `${log}.copy-20260131T120000Z`);
    await writeFile(log, 'garbage');
    await refused(`run \`holdfast restore --data-dir '${dataDir}'\`, which puts log.db.copy-20260131T120000Z in place`);
    expect((await run('restore', '--data-dir', dataDir)).code).toBe(0);
    await dev(dataDir);
  });

  test('a second one on the machine is told which ports it has instead, in its log and as an event', async () => {
    const manifest = join(await tempFolder(), 'a.yaml');
    await writeFile(manifest, service('a').replace('port: 80', 'port: 18180'));
    const range = ['--vip-range', '127.198.77.0/24'];
    await dev(await tempFolder(), '--apply', manifest, ...range);
    const dataDir = await tempFolder();
    const second = await dev(dataDir, '--apply', manifest, ...range);
    const told = 'port 18180 is taken by another program: listens on 26180 instead';
    await until(() => second.out, told);
    expect(second.out).toMatch(new RegExp(`"level":"warn".*${told}`));
    expect((await run('events', '--data-dir', dataDir)).out).toContain(`warning  service default/a port tcp-18180  ${told}`);
  });

  test('a second one on the same data directory is refused by name, and the first goes on', async () => {
    const dataDir = await tempFolder();
    const daemon = await dev(dataDir);
    const second = await run('dev', '--data-dir', dataDir);
    expect(second).toEqual({
      code: 1,
      out: '',
      err: `error: agent.data_dir_locked: another daemon runs on ${dataDir}\n  what to do: stop the daemon that uses this data directory, or name another with --data-dir\n`,
    });
    expect((await run('status', '--data-dir', dataDir)).code).toBe(0);
    daemon.child.kill('SIGTERM');
    expect((await finish(daemon)).code).toBe(0);
  });

  test('--root moves every path below it; two on one machine do not meet', async () => {
    const roots = [await tempFolder(), await tempFolder()];
    for (const root of roots) await dev('/var/lib/holdfast', '--root', root);
    for (const root of roots) {
      expect(await readdir(root)).toEqual(['var']);
      const files = await readdir(join(root, 'var/lib/holdfast'));
      expect(files).toEqual(expect.arrayContaining(['admin', 'lock', 'log.db', 'node-identity.json']));
      expect((await run('status', '--data-dir', join(root, 'var/lib/holdfast'))).code).toBe(0);
    }
  });

  test('the identity stays what it was made as, and what asks for another is told', async () => {
    const dataDir = await tempFolder();
    const first = await dev(dataDir, '--node-name', 'one');
    first.child.kill('SIGTERM');
    await finish(first);
    const second = await dev(dataDir, '--node-name', 'two');
    expect(second.out).toContain('nodeName is two, but this node was made as one and stays it');
    expect(JSON.parse(await readFile(join(dataDir, 'node-identity.json'), 'utf8')).node_id).toBe('one');
  });

  test('--apply of a wrong manifest ends it, with --watch it can still be mended and removed', async () => {
    const dataDir = await tempFolder();
    const manifests = await tempFolder();
    const file = join(manifests, 'a.yaml');
    const nothing = await run('dev', '--data-dir', dataDir, '--metrics-listen', 'off', '--apply', manifests);
    expect(nothing).toMatchObject({ code: 1, err: expect.stringContaining(`resource.invalid: no document in ${manifests}\n`) });
    await writeFile(file, 'kind: Servce\n');
    const refused = await run('dev', '--data-dir', dataDir, '--metrics-listen', 'off', '--apply', manifests);
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining(`${file}:1: document 1, kind: `)]);
    await dev(dataDir, '--apply', manifests, '--watch');
    const names = async () => (await run('get', 'svc', '--data-dir', dataDir)).out.match(/^(?!SERVICE)\S+/gm) ?? [];
    await writeFile(join(manifests, '.a.yaml.swp'), `${service('a')}${service('b')}`);
    await rename(join(manifests, '.a.yaml.swp'), file);
    await expect.poll(names, { timeout: 10_000 }).toEqual(['a', 'b']);
    await writeFile(file, service('b'));
    await expect.poll(names, { timeout: 10_000 }).toEqual(['b']);
  });
});

describe('standard output', () => {
  test('whose reader went away is no failure', async () => {
    const shell = spawn('sh', ['-c', `{ '${holdfast}' --help; echo $? >&2; } | true`], { stdio: ['ignore', 'pipe', 'pipe'] });
    let err = '';
    shell.stderr.on('data', (chunk: Buffer) => {
      err += chunk.toString();
    });
    await once(shell, 'close');
    expect(err).toBe('0\n');
  });

  test('that cannot be written is one', async () => {
    const shell = spawn('sh', ['-c', `'${holdfast}' --help > /dev/full`], { stdio: ['ignore', 'ignore', 'pipe'] });
    const [code] = await once(shell, 'close');
    expect(code).toBe(1);
  });
});

test('the daemon of the current folder is asked when none is named', async () => {
  const cwd = await tempFolder();
  await mkdir(join(cwd, '.holdfast'));
  const ran = await finish(start(['status'], { cwd }));
  expect([ran.code, ran.err]).toEqual([3, expect.stringContaining(join(cwd, '.holdfast/admin/admin.sock'))]);
});

test.skipIf(existsSync('/var/lib/holdfast'))('the daemon of the machine is asked when the current folder has none', async () => {
  const ran = await finish(start(['status'], { cwd: await tempFolder() }));
  expect([ran.code, ran.err]).toEqual([3, expect.stringContaining('/var/lib/holdfast/admin/admin.sock')]);
});

test('a data directory that is not there is named, with what to do', async () => {
  const cwd = await tempFolder();
  const ran = await finish(start(['restore', '--list', '--data-dir', join(cwd, 'none')], { cwd }));
  expect([ran.code, ran.err]).toEqual([
    1,
    expect.stringContaining('name the data directory of the stopped daemon with --data-dir'),
  ]);
});

describe('holdfast register', () => {
  test.skipIf(!canMakeCertificates())('without a server it tries again, then says so and changes nothing', async () => {
    const folder = await tempFolder();
    throwawayCertificate(folder, ['IP:127.0.0.1']);
    const root = join(folder, 'cert.pem');
    await writeFile(join(folder, 'token'), `${'0'.repeat(12)}.${'a'.repeat(43)}\n`);
    const to = ['--server', '127.0.0.1:1', '--account', 'default', '--ca', root, '--token-file', join(folder, 'token')];
    const ran = await run('register', ...to, '--data-dir', join(folder, 'data'));
    expect(ran).toEqual({ code: 1, out: '', err: expect.stringMatching(/^error: link\.unreachable: [^\n]*127\.0\.0\.1:1/) });
    expect(await readdir(join(folder, 'data'))).toEqual(['lock']);
  });
});
