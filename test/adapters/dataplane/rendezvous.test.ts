import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { loadAddon } from '../../../src/adapters/dataplane/addon.js';
import { NativeDataPlane } from '../../../src/adapters/dataplane/native-data-plane.js';
import { chooseByHash } from '../../../src/domain/dataplane/rendezvous.js';
import { address, endpoint, listener } from '../../support/listeners.js';
import { backend } from '../../support/tcp-peers.js';

const options = { signal: new AbortController().signal };

/** Says its own port, and ends. */
const named = () => backend((socket) => socket.end(String(socket.localPort)));

async function answerTo(client: string, port: number): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, localAddress: client });
  const [chunk] = await once(socket, 'data');
  socket.destroy();
  return String(chunk);
}

test('the data path gives a client the endpoint that explain says', async () => {
  await using one = await named();
  await using two = await named();
  await using three = await named();
  const plane = new NativeDataPlane(loadAddon);
  plane.start(() => {});
  try {
    const endpoints = [endpoint(one.port, 1), endpoint(two.port, 5), endpoint(three.port, 100)];
    const [result] = await plane.apply(
      { upsert: [listener('a/b/c', endpoints, { algorithm: 'source-hash' })], remove: [] },
      options,
    );
    if (result?.listening !== true) throw new Error(JSON.stringify(result));
    const clients = Array.from({ length: 200 }, (_, index) => `127.0.${index}.${(index * 7) % 250}`).slice(1);
    const answers = await Promise.all(clients.map((client) => answerTo(client, result.port)));
    const expected = clients.map((client) => String(chooseByHash(address(client), endpoints)?.port));
    expect(answers).toEqual(expected);
    expect(new Set(answers).size).toBeGreaterThan(1);
  } finally {
    await plane.stop(0);
  }
});
