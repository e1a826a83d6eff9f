import { connect, createServer, type Socket } from 'node:net';
import { ServerCredentials } from '@grpc/grpc-js';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { GrpcLogConnection } from '../../../src/adapters/log/grpc-log-connection.js';
import type { NodeName } from '../../../src/domain/identity/model.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';
import { logServiceRig } from '../../support/log-service-rig.js';
import { ThrowawayPki } from '../../support/throwaway-pki.js';

const { signal } = new AbortController();
const options = { signal };
const clock = new SystemClock();
const stops: (() => unknown)[] = [];
let pki: ThrowawayPki;
let server: { readonly certificate: string; readonly privateKey: string };
let node: { readonly ca: string; readonly certificate: string; readonly privateKey: string };

beforeAll(() => {
  pki = new ThrowawayPki();
  server = pki.issue({ name: 'server', san: ['DNS:localhost'], usage: 'serverAuth' });
  node = { ca: pki.root, ...pki.issue({ name: 'node', usage: 'clientAuth' }) };
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
afterAll(() => pki.remove());

async function served() {
  const log = new FakeOrderedLog({ clock });
  const pair = { private_key: Buffer.from(server.privateKey), cert_chain: Buffer.from(server.certificate) };
  const serverCredentials = ServerCredentials.createSsl(Buffer.from(pki.root), [pair], true);
  const rig = await logServiceRig({ log, clock, serverCredentials });
  stops.push(rig.stop);
  return { log, port: rig.port };
}

function connection(...ports: readonly number[]) {
  const addresses = ports.map((port) => ({ host: 'localhost', port }));
  const made = new GrpcLogConnection({ addresses, readPair: async () => node, nodeId: 'here' as NodeName, clock });
  stops.push(() => made.close());
  return made;
}

/** Hands on what comes until it is frozen: then the path is dead, and nobody is told. */
async function path(to: number) {
  const sockets = new Set<Socket>();
  const relay = createServer((client) => {
    const upstream = connect(to, '127.0.0.1');
    for (const socket of [client, upstream]) sockets.add(socket.on('error', () => {}));
    client.pipe(upstream).pipe(client);
  });
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
  stops.push(() => {
    for (const socket of sockets) socket.destroy();
    relay.close();
  });
  const at = relay.address();
  const freeze = () => {
    for (const socket of sockets) socket.unpipe().pause();
  };
  return { port: typeof at === 'object' && at !== null ? at.port : 0, freeze };
}

describe('GrpcLogConnection', () => {
  test('a server that is out of reach is left for the next one', async () => {
    const { log, port } = await served();
    const made = connection(1, port);
    await expect(made.head(options)).rejects.toMatchObject({ code: 'link.unreachable' });
    expect(await made.head(options)).toEqual(await log.head(options));
  });

  test('what it is given is read again when it is opened anew', async () => {
    const { log, port } = await served();
    const made = connection(port);
    const head = await made.head(options);
    const former = node;
    node = { ...former, certificate: 'none', privateKey: 'none' };
    expect(await made.head(options)).toEqual(head);
    made.reopen();
    await expect(made.head(options)).rejects.toThrow();
    node = former;
    expect(await made.head(options)).toEqual(await log.head(options));
  });

  test('a path that dies without a word is noticed within 15 s', { timeout: 60_000 }, async () => {
    const { port } = await served();
    const dead = await path(port);
    const made = connection(dead.port);
    const frames = made.watch(await made.head(options), options)[Symbol.asyncIterator]();
    const next = frames.next().then(async () => frames.next());
    next.catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 500));
    dead.freeze();
    const begun = performance.now();
    await expect(next.then(() => frames.next())).rejects.toMatchObject({ code: 'link.unreachable' });
    expect(performance.now() - begun).toBeLessThan(5 * 15_000);
  });
});
