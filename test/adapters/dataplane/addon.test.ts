import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { describe, expect, test } from 'vitest';
import { addonPath, loadAddon } from '../../../src/adapters/dataplane/addon.js';

const addon = loadAddon();
const ignore = () => {};

test('a missing addon says what to do', () => {
  expect(() => loadAddon('/nowhere/holdfast.node')).toThrow(
    expect.objectContaining({
      code: 'dataplane.addon_missing',
      message: expect.stringContaining('there is no /nowhere/holdfast.node'),
    }),
  );
});

test.each([
  ['settings', () => Reflect.construct(addon.Proxy, [2, ignore]), 'settings must be an object'],
  ['threads', () => new addon.Proxy({ threads: 1.5 }, ignore), 'threads must be an integer from 0 to 64'],
  ['busyPollUs', () => new addon.Proxy({ busyPollUs: 1_001 }, ignore), 'busyPollUs must be an integer from 0 to 1000'],
  ['onEvent', () => Reflect.construct(addon.Proxy, [{}]), 'onEvent must be a function'],
  [
    'delta',
    () =>
      Reflect.apply(Reflect.get(new addon.Proxy({ threads: 2 }, ignore), 'apply'), new addon.Proxy({ threads: 2 }, ignore), [[]]),
    'delta must be a Uint8Array',
  ],
  ['delta', () => new addon.Proxy({ threads: 2 }, ignore).apply(new Uint8Array(3)), 'delta: truncated'],
  ['graceMs', () => new addon.Proxy({ threads: 2 }, ignore).stop(-1, false), 'graceMs must be an integer from 0 to 86400000'],
  ['id', () => new addon.Proxy({ threads: 2 }, ignore).stats(-1), 'id must be an integer from 0 to 4294967295'],
  ['path', () => addon.lockFile(''), 'path must be a string that is not empty, without NUL'],
  ['fd', () => addon.peerUid(-1), 'fd must be an integer from 0 to 2147483647'],
])('a wrong %s is refused', (_name, call, message) => {
  expect(call).toThrow(new TypeError(message));
});

describe('lockFile', () => {
  test('holds for the life of the process, against others too', async () => {
    const path = join(await mkdtemp(join(tmpdir(), 'holdfast lock ')), 'lock');
    expect(addon.lockFile(path)).toBeGreaterThan(2);
    expect(() => addon.lockFile(path)).toThrow(expect.objectContaining({ code: 'EWOULDBLOCK' }));
    const other = `try { require(${JSON.stringify(addonPath(process.env.HOLDFAST_ADDON))}).lockFile(process.argv[1]) } catch ({ code }) { console.log(code) }`;
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', other, path]);
    expect(stdout).toBe('EWOULDBLOCK\n');
  });

  test('says why a file cannot be opened', () => {
    expect(() => addon.lockFile('/nowhere/lock')).toThrow(expect.objectContaining({ code: 'ENOENT' }));
  });
});

describe('peerUid', () => {
  test('names the user at the other end', async () => {
    const path = join(await mkdtemp(join(tmpdir(), 'holdfast-peer-')), 'socket');
    const server = createServer().listen(path);
    await once(server, 'listening');
    const { connect } = await import('node:net');
    const client = connect(path);
    const [accepted] = await once(server, 'connection');
    expect(addon.peerUid(accepted._handle.fd)).toBe(process.getuid?.());
    client.destroy();
    server.close();
  });

  test('a file has no peer', () => {
    expect(() => addon.peerUid(addon.lockFile(join(tmpdir(), `holdfast-no-peer-${process.pid}`)))).toThrow(
      expect.objectContaining({ code: 'ENOTSOCK' }),
    );
  });
});

describe('environments', () => {
  const use = `
    const addon = require(${JSON.stringify(addonPath(process.env.HOLDFAST_ADDON))});
    const proxies = [0, 1, 3].map((threads) => new addon.Proxy({ threads }, () => {}));
    console.log(JSON.stringify(proxies.map((proxy) => proxy.info().threads >= 1)));`;

  test('several proxies do not keep a process alive', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', use], { timeout: 10_000 });
    expect(stdout).toBe('[true,true,true]\n');
  });

  test('a worker thread may end while its proxies run', async () => {
    for (let round = 0; round < 5; round++) {
      const worker = new Worker(
        `${use} setInterval(() => {}, 1000); require('node:worker_threads').parentPort.postMessage('up')`,
        {
          eval: true,
          stdout: true,
        },
      );
      expect(await once(worker, 'message')).toEqual(['up']);
      expect(await worker.terminate()).toBe(1);
    }
  });
});
