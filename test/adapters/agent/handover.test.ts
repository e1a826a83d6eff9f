import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Predecessor } from '../../../src/adapters/agent/predecessor.js';
import { SuccessorProcess } from '../../../src/adapters/agent/successor-process.js';
import { addonPath, loadAddon } from '../../../src/adapters/dataplane/addon.js';
import { NativeDataPlane } from '../../../src/adapters/dataplane/native-data-plane.js';
import { endpoint, listener } from '../../support/listeners.js';

const addon = loadAddon();
const path = addonPath(process.env.HOLDFAST_ADDON);
const options = { signal: AbortSignal.timeout(20_000) };
const folder = mkdtempSync(join(tmpdir(), 'holdfast-handover-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A program that says what the text says, with the addon and the channel at hand. */
function start(text: string): Promise<SuccessorProcess> {
  const file = join(folder, `${Math.random()}.cjs`);
  writeFileSync(
    file,
    `const fs = require('node:fs'); const addon = require(${JSON.stringify(path)}); const channel = Number(process.env.HOLDFAST_HANDOVER);\n${text}`,
  );
  return SuccessorProcess.start(addon, { program: process.execPath, args: [file], env: process.env });
}

test('a listener goes to another process, which answers at once', async () => {
  const plane = new NativeDataPlane(() => addon, { threads: 2 });
  plane.start(() => {});
  const [result] = await plane.apply({ upsert: [listener('a/b/c', [endpoint(1)])], remove: [] }, options);
  if (result?.listening !== true) throw new Error('it does not listen');
  const lock = addon.lockFile(join(folder, 'lock'));
  // It says hello itself, so that who answers is seen.
  const successor = await start(`
    fs.writeSync(channel, 'a');
    const { text, fds } = addon.receiveDescriptors(channel, 10000);
    const { what, more } = JSON.parse(text);
    if (what.join() !== 'lock,tcp' || more) process.exit(1);
    const server = require('node:net').createServer((peer) => peer.end('hello from the next'));
    server.listen({ fd: fds[1] }, () => fs.writeSync(channel, 's'));`);
  await successor.asks(options);
  successor.give({ locks: [lock], sockets: plane.sockets() });
  await successor.serves(options);
  await plane.stop(0, { handedOver: true });
  const answer = await new Promise((resolve, reject) => {
    connect(result.port, '127.0.0.1')
      .on('data', (text) => resolve(String(text)))
      .on('error', reject);
  });
  expect(answer).toBe('hello from the next');
  expect(() => addon.lockFile(join(folder, 'lock'))).toThrow(expect.objectContaining({ code: 'EWOULDBLOCK' }));
  await successor.kill();
  await successor.kill();
});

describe('a process that does not take over is named for what it does', () => {
  test('it ends before it asks', async () => {
    const successor = await start('process.exit(3)');
    await expect(successor.asks(options)).rejects.toMatchObject({
      code: 'agent.successor_failed',
      message: expect.stringContaining('3'),
    });
    await expect(successor.serves(options)).rejects.toMatchObject({ code: 'agent.successor_failed' });
    await successor.kill();
  });

  test('it says nothing', async () => {
    const successor = await start('setInterval(() => {}, 1000)');
    await expect(successor.asks({ signal: AbortSignal.timeout(50) })).rejects.toMatchObject({ code: 'agent.successor_failed' });
    await successor.kill();
  });

  test('it asks and closes the channel', async () => {
    const successor = await start("fs.writeSync(channel, 'a'); fs.closeSync(channel); setInterval(() => {}, 1000)");
    await successor.asks(options);
    await expect
      .poll(() => {
        try {
          successor.give({ locks: [1], sockets: [] });
          return 'given';
        } catch (error) {
          return error;
        }
      })
      .toMatchObject({ code: 'agent.successor_failed' });
    await successor.kill();
  });

  test('it cannot be started', async () => {
    const command = { program: join(folder, 'nothing'), args: [], env: {} };
    await expect(SuccessorProcess.start(addon, command)).rejects.toMatchObject({ code: 'agent.successor_failed' });
  });
});

describe('the one before it', () => {
  let channel: ReturnType<typeof addon.openChannel>;
  beforeAll(() => {
    channel = addon.openChannel();
  });

  test('is there when the variable says so, once', () => {
    const env: NodeJS.ProcessEnv = { HOLDFAST_HANDOVER: String(channel.theirs) };
    expect(Predecessor.of({})).toBeUndefined();
    const predecessor = Predecessor.of(env);
    expect(env).toEqual({});
    addon.sendDescriptors(channel.ours, JSON.stringify({ what: ['lock', 'udp'], more: true }), [0, 1], 1_000);
    addon.sendDescriptors(channel.ours, JSON.stringify({ what: ['tcp'], more: false }), [2], 1_000);
    const taken = predecessor?.take(addon);
    expect(taken?.sockets.map(({ protocol }) => protocol)).toEqual(['udp', 'tcp']);
    expect(taken?.locks.length).toBe(1);
  });

  test.each([
    ['no JSON', 'what'],
    ['something else', JSON.stringify({ what: ['door'], more: false })],
    ['no lock', JSON.stringify({ what: ['tcp'], more: false })],
  ])('that gives %s is refused', (_, text) => {
    const predecessor = Predecessor.of({ HOLDFAST_HANDOVER: String(channel.theirs) });
    addon.sendDescriptors(channel.ours, text, [2], 1_000);
    expect(() => predecessor?.take(addon)).toThrow(expect.objectContaining({ code: 'agent.nothing_inherited' }));
  });

  test.each(['', 'x', '-1', '99999'])('that is named by %j is refused', (text) => {
    const predecessor = Predecessor.of({ HOLDFAST_HANDOVER: text });
    expect(() => predecessor?.take(addon)).toThrow(expect.objectContaining({ code: 'agent.nothing_inherited' }));
  });
});
