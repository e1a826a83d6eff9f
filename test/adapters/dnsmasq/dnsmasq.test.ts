import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { ExecaCommandRunner } from '../../../src/adapters/command/execa-command-runner.js';
import { FileDnsmasqConfig } from '../../../src/adapters/dnsmasq/file-dnsmasq-config.js';
import { sourceArguments } from '../../../src/adapters/threads/typescript-worker.js';
import { DnsmasqEffect } from '../../../src/app/dnsmasq/dnsmasq-effect.js';
import { allowedDirectives } from '../../../src/domain/dnsmasq/directives.js';
import { judgeContents } from '../../../src/domain/dnsmasq/judge.js';
import type { TaskId } from '../../../src/ports/instruction/task-runner.js';
import { dnsmasqConfigContract } from '../../contract/dnsmasq-config.contract.js';
import { FakeCommandRunner } from '../../fakes/fake-command-runner.js';
import { FakeDnsmasqConfig } from '../../fakes/fake-dnsmasq-config.js';
import { ForegroundDnsmasq } from '../../support/foreground-dnsmasq.js';
import { sha256 } from '../../support/instruction-rig.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };
const commands = new ExecaCommandRunner();
const bytes = (text: string) => new TextEncoder().encode(text);

async function onDisk() {
  const folder = await tempFolder();
  const served = join(folder, 'dnsmasq.d');
  await mkdir(served);
  const paths = { file: join(served, 'runos.conf'), memoryFile: join(folder, 'dnsmasq.json') };
  return { ...paths, served, config: new FileDnsmasqConfig({ ...paths, commands }) };
}

dnsmasqConfigContract('file', async () => {
  const { file, memoryFile, config } = await onDisk();
  return { config, reopened: () => new FileDnsmasqConfig({ file, memoryFile, commands }) };
});

dnsmasqConfigContract('fake', async () => {
  const config = new FakeDnsmasqConfig();
  config.refused.set('1.2.3.4.5', 'dnsmasq --test: bad address at line 2');
  return { config, reopened: () => config };
});

describe('the file', () => {
  test('is readable to dnsmasq, and nothing else is left beside it', async () => {
    const { config, file, served } = await onDisk();
    await config.place(bytes('no-resolv\n'), options);
    expect((await stat(file)).mode & 0o777).toBe(0o644);
    expect(await readdir(served)).toEqual(['runos.conf']);
  });

  test.each([
    ['a folder', (file: string) => mkdir(file), 'it is not a regular file'],
    ['a link into the void', (file: string) => symlink('/nowhere/x', file), undefined],
    ['more than 8 MiB', (file: string) => writeFile(file, Buffer.alloc(8 * 1024 * 1024 + 1)), 'it has more than 8388608 bytes'],
  ])('%s in its place', async (_, put, problem) => {
    const { config, file } = await onDisk();
    await put(file);
    const read = config.read(options);
    if (problem === undefined) expect(await read).toBeUndefined();
    else await expect(read).rejects.toThrow(`dnsmasq.unusable: ${file} cannot be read: ${problem}`);
  });

  test('a machine without the folder is told so', async () => {
    const { config, served, file } = await onDisk();
    await rm(served, { recursive: true });
    expect(await config.read(options)).toBeUndefined();
    await expect(config.place(bytes('x'), options)).rejects.toThrow(
      `dnsmasq.unusable: ${file} cannot be written: ENOENT (its folder is missing)`,
    );
  });

  test('a memory that cannot be read is none', async () => {
    const { config, memoryFile } = await onDisk();
    for (const text of [
      '',
      '{',
      '[]',
      '{"served":{"digest":1}}',
      '{"served":{"digest":"a","mark":"m","boot":"b","startedAt":"x"}}',
    ]) {
      await writeFile(memoryFile, text);
      expect(await config.remembered(options)).toEqual({ served: undefined, unfinished: undefined });
    }
  });

  test('is tested in a private folder that is gone afterwards, by exactly this', async () => {
    const fake = new FakeCommandRunner();
    const seen: string[] = [];
    fake.program(['dnsmasq'], async ({ argv }) => {
      const path = argv[2]?.replace('--conf-file=', '') ?? '';
      seen.push(path, await readFile(path, 'utf8'), ((await stat(path)).mode & 0o777).toString(8));
      return { exitCode: 1, stderr: `\ndnsmasq: bad option at line 1 of ${path}\n` };
    });
    const { file, memoryFile } = await onDisk();
    const config = new FileDnsmasqConfig({ file, memoryFile, commands: fake });
    expect(await config.test(bytes('x\n'), options)).toBe('dnsmasq --test: bad option at line 1 of the new file');
    const [path = '', text, mode] = seen;
    expect(fake.dump()).toBe(`dnsmasq --test --conf-file=${path}\n`);
    expect([text, mode, path.startsWith(join(tmpdir(), 'holdfast-dnsmasq-'))]).toEqual(['x\n', '600', true]);
    await expect(stat(path)).rejects.toThrow('ENOENT');
    fake.program(['dnsmasq'], { timedOut: true, exitCode: -1 });
    expect(await config.test(bytes('x\n'), options)).toBe('dnsmasq --test took too long');
  });
});

describe('the judge and the real dnsmasq', () => {
  test('every allowed directive is one of dnsmasq, but for the name that it spells in capitals', async () => {
    const { config } = await onDisk();
    const values: Readonly<Record<string, string>> = {
      ...{ address: '/a.example/10.0.0.1', server: '/a.example/10.0.0.1#53', local: '/a.example/', domain: 'a.example' },
      ...{ 'listen-address': '127.0.0.1', interface: 'lo', 'except-interface': 'eth9' },
    };
    for (const [name, kind] of allowedDirectives) {
      const line = kind === 'none' ? name : `${name}=${kind === 'maybe' ? 'extra' : (values[name] ?? '53')}`;
      expect(judgeContents(line)).toEqual([]);
      const problem = await config.test(bytes(`${line}\n`), options);
      expect([line, problem]).toEqual([line, name === 'filter-aaaa' ? expect.stringContaining('bad option') : undefined]);
    }
  });

  test('a directive behind a comment of 1,023 bytes is one to dnsmasq, and is refused', async () => {
    const { config } = await onDisk();
    const hidden = `#${'x'.repeat(1_023)}no-such-directive\n`;
    expect(await config.test(bytes(hidden), options)).toContain('bad option at line 2');
    expect(judgeContents(hidden)).toEqual(['line 1: longer than 1000 bytes']);
  });
});

describe('UPDATE_DNSMASQ on a real dnsmasq', () => {
  const config = (address: string) => `address=/node.example/${address}\n`;
  const context = { ...options, task: 'none' as TaskId, receivedAt: 0, step: undefined, reached: async () => {} };

  async function node() {
    const disk = await onDisk();
    const units = await ForegroundDnsmasq.on(disk.served);
    onTestFinished(() => units.stop());
    await disk.config.place(bytes(config('10.0.0.1')), options);
    await units.restart();
    const effect = new DnsmasqEffect({ config: disk.config, units, clock: new SystemClock(), sha256, boot: 'boot-1' });
    const update = (contents: string) => effect.run({ do: 'update_dnsmasq', contents }, context);
    return { ...disk, units, update };
  }

  test('the new answer is served; the same again is not restarted', async () => {
    const { units, update } = await node();
    expect(await units.resolve('node.example')).toBe('10.0.0.1');
    await update(config('10.0.0.2'));
    expect(await units.resolve('node.example')).toBe('10.0.0.2');
    const { startedAt } = await units.state();
    await update(config('10.0.0.2'));
    expect((await units.state()).startedAt).toBe(startedAt);
  });

  test('a bad file never reaches the service', async () => {
    const { units, update, file } = await node();
    const { startedAt } = await units.state();
    await expect(update('address=/node.example/10.0.0.256\n')).rejects.toThrow(
      /^dnsmasq.refused: dnsmasq --test: Bad address .*at line 1/,
    );
    expect(await readFile(file, 'utf8')).toBe(config('10.0.0.1'));
    expect([await units.resolve('node.example'), (await units.state()).startedAt]).toEqual(['10.0.0.1', startedAt]);
  });

  test('a file that passes the test and cannot be served gives way to the former one', async () => {
    const { units, update, file } = await node();
    // Nothing has this address, so that dnsmasq cannot listen there.
    await expect(update(`${config('10.0.0.2')}listen-address=203.0.113.77\n`)).rejects.toThrow(
      /^dnsmasq.failed: .*; the former file is back and dnsmasq runs on that$/s,
    );
    expect(await readFile(file, 'utf8')).toBe(config('10.0.0.1'));
    expect(await units.resolve('node.example')).toBe('10.0.0.1');
  });

  test('test 9: killed between rename and restart, the same content pushed again is served', async () => {
    const { units, update, file, memoryFile } = await node();
    await update(config('10.0.0.2'));
    const program = [join(import.meta.dirname, 'update-and-die.ts'), file, memoryFile, config('10.0.0.3')];
    const child = spawn(process.execPath, [...sourceArguments, ...program], { stdio: 'inherit' });
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
    expect(await readFile(file, 'utf8')).toBe(config('10.0.0.3'));
    expect(await units.resolve('node.example')).toBe('10.0.0.2');
    await update(config('10.0.0.3'));
    expect(await units.resolve('node.example')).toBe('10.0.0.3');
  });

  test('without a place for its memory nothing is begun', async () => {
    const { units, update, memoryFile } = await node();
    await mkdir(memoryFile);
    await expect(update(config('10.0.0.2'))).rejects.toThrow(/^dnsmasq.unusable: .*dnsmasq.json cannot be written: /);
    expect(await units.resolve('node.example')).toBe('10.0.0.1');
  });
});
