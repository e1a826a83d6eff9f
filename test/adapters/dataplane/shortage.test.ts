import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { addonPath } from '../../../src/adapters/dataplane/addon.js';
import { encodeTableDelta } from '../../../src/adapters/dataplane/table-codec.js';
import { endpoint, listener } from '../../support/listeners.js';
import { ask, echoBackend, open } from '../../support/tcp-peers.js';

/** A proxy with at most 128 open files, of which Node has about 25. */
async function smallProxy(port: number) {
  const delta = encodeTableDelta([], [{ number: 1, spec: listener('a/b/c', [endpoint(port)]) }]);
  const script = join(import.meta.dirname, '../../support/proxy-process.mjs');
  const command = ['ulimit -n 128; exec "$0" "$@"', process.execPath, script, addonPath(process.env.HOLDFAST_ADDON)];
  const child = spawn('sh', ['-c', ...command, Buffer.from(delta).toString('base64')], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await lines.next()).value ?? '{}');
  const state = () => {
    child.stdin.write('\n');
    return next();
  };
  const stop = async () => {
    child.stdin.end();
    if (child.exitCode === null) await once(child, 'exit');
  };
  return { port: (await next()).port as number, state, [Symbol.asyncDispose]: stop };
}

/** Whether it was let in; one that is refused hears of it at once. */
function visit(port: number): Promise<{ socket: Socket; served: boolean }> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.on('connect', () => socket.write('x'));
    socket.on('data', () => resolve({ socket, served: true }));
    socket.on('error', () => resolve({ socket, served: false }));
  });
}

/** faults.md 18: descriptors ran out, and accept spun at 100 % CPU while old flows starved. */
test('128 descriptors and 300 clients: the rest is refused, old flows live, no spinning', async () => {
  await using server = await echoBackend();
  await using proxy = await smallProxy(server.port);
  const old = await open(proxy.port);
  expect(await ask(old, 'one')).toBe('one');
  const visits = await Promise.all(Array.from({ length: 300 }, () => visit(proxy.port)));
  const served = visits.filter((each) => each.served);
  const { connections, connectionLimit } = await proxy.state();
  expect([served.length + 1, connections]).toEqual([connectionLimit, connectionLimit]);
  expect(connectionLimit).toBeGreaterThan(30);
  const before = await proxy.state();
  await sleep(500);
  expect((await proxy.state()).cpuUs - before.cpuUs).toBeLessThan(100_000);
  expect(await ask(old, 'two')).toBe('two');
  for (const { socket } of visits) socket.destroy();
  await expect.poll(async () => (await proxy.state()).connections).toBe(1);
  const late = await open(proxy.port);
  expect(await ask(late, 'three')).toBe('three');
  for (const socket of [old, late]) socket.destroy();
});
