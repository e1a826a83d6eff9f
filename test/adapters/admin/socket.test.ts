import { chown, lstat, mkdir, stat, symlink, writeFile } from 'node:fs/promises';
import { createConnection, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { GrpcAdminClient } from '../../../src/adapters/admin/grpc-admin-client.js';
import type { NodeEvent } from '../../../src/ports/driving/operations.js';
import { FakeOperations } from '../../fakes/fake-operations.js';
import { absolute, adminRig } from '../../support/admin-rig.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };
const mode = async (path: string) => ((await lstat(path)).mode & 0o7777).toString(8);

describe('the socket', () => {
  test('is 0600 in a folder of 0700, whatever the umask and the folder were', async () => {
    const former = process.umask(0);
    onTestFinished(() => void process.umask(former));
    const dataDir = await tempFolder();
    await mkdir(join(dataDir, 'admin'), { mode: 0o777 });
    const { server, folder, socket } = await adminRig({ folder: absolute(join(dataDir, 'admin')) });
    await server.start();
    expect([await mode(folder), await mode(socket)]).toEqual(['700', '600']);
    expect(process.umask()).toBe(0);
  });

  test('that a dead daemon left is replaced; after a stop there is none', async () => {
    const { server, folder, socket, client } = await adminRig();
    await mkdir(folder, { recursive: true });
    await writeFile(socket, '');
    await server.start();
    expect(await client().status(options)).toMatchObject({ nodeId: 'n1' });
    await server.stop();
    await server.stop();
    await expect(stat(socket)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('a path of more than 107 bytes works on both sides', async () => {
    const dataDir = join(await tempFolder(), ...Array(10).fill('a-long-name-of-a-folder'));
    const { server, socket, folder, client } = await adminRig({ folder: absolute(join(dataDir, 'admin')) });
    expect(Buffer.byteLength(socket)).toBeGreaterThan(200);
    await server.start();
    expect(await mode(socket)).toBe('600');
    expect(await client().status(options)).toMatchObject({ nodeId: 'n1' });
    await server.stop();
    await expect(stat(join(folder, 'admin.sock'))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test.skipIf(process.geteuid?.() !== 0)('is not put into a folder of another user', async () => {
    const { server, folder } = await adminRig();
    await mkdir(folder, { recursive: true });
    await chown(folder, 65_534, 65_534);
    await expect(server.start()).rejects.toMatchObject({
      code: 'admin.not_served',
      message: /belongs to another user \(uid 65534\)/,
    });
  });

  test.each<[string, (folder: string) => Promise<void>]>([
    ['a file in place of the folder', (folder) => writeFile(folder, '')],
    ['a link in place of the folder', (folder) => symlink('/tmp', folder)],
    ['a folder in place of the socket', async (folder) => void (await mkdir(join(folder, 'admin.sock'), { recursive: true }))],
  ])('%s is refused by name, and the next start is free to succeed', async (_, make) => {
    const { server, folder } = await adminRig();
    await make(folder);
    await expect(server.start()).rejects.toMatchObject({ code: 'admin.not_served', message: expect.stringContaining(folder) });
    await server.stop();
  });

  test('a stranger is shown out', async () => {
    const { server, client, logger } = await adminRig({ peerUid: () => 12_345 });
    await server.start();
    await expect(client().status(options)).rejects.toMatchObject({ code: 'admin.unreachable' });
    expect(logger.lines[0]).toMatchObject({ level: 'warn', fields: { uid: 12_345 } });
  });

  test('a peer that cannot be told is a matter of the modes', async () => {
    const { server, client } = await adminRig({
      peerUid: () => {
        throw new Error('gone');
      },
    });
    await server.start();
    expect(await client().status(options)).toMatchObject({ nodeId: 'n1' });
  });
});

describe('a daemon that is not there', () => {
  test('is named by its socket', async () => {
    const { client, socket, folder } = await adminRig();
    const unreachable = {
      code: 'admin.unreachable',
      message: `admin.unreachable: no daemon answers at ${socket}: there is no such socket`,
    };
    await expect(client().status(options)).rejects.toMatchObject(unreachable);
    await mkdir(folder, { recursive: true });
    await writeFile(socket, '');
    await expect(client().status(options)).rejects.toMatchObject({ code: 'admin.unreachable' });
  });

  test('also where its path is too long to be tried', () => {
    const socket = `/${'absent/'.repeat(30)}admin.sock`;
    expect(() => new GrpcAdminClient(socket)).toThrow(expect.objectContaining({ code: 'admin.unreachable' }));
  });

  test('one that is stopped in the middle of a call ends it', async () => {
    const { server, client, operations } = await adminRig();
    await server.start();
    operations.tell({ subject: 'a', message: 'one' });
    const events = client().events({ follow: true }, options)[Symbol.asyncIterator]();
    await events.next();
    const next = events.next();
    await server.stop();
    await expect(next).rejects.toMatchObject({ code: 'admin.unreachable' });
  });

  test('something else at the socket is not taken for one', async () => {
    const { folder, socket, client } = await adminRig();
    await mkdir(folder, { recursive: true });
    const other = createServer((connection) => connection.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    await new Promise<void>((resolve) => other.listen(socket, resolve));
    onTestFinished(() => void other.close());
    await expect(client().status(options)).rejects.toMatchObject({ code: 'admin.unreachable' });
  });
});

describe('clients that do not keep to the rules', () => {
  test.each<[string, Buffer]>([
    ['garbage', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['noise', Buffer.alloc(100_000, 0xa5)],
    ['a preface and then noise', Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), Buffer.alloc(10_000, 0xff)])],
    ['nothing', Buffer.alloc(0)],
  ])('%s holds up nobody, nor a stop', async (_, bytes) => {
    const { server, client, socket } = await adminRig();
    await server.start();
    const connections = Array.from({ length: 20 }, () => {
      const connection = createConnection(socket);
      connection.on('error', () => {});
      connection.write(bytes);
      return connection;
    });
    await sleep(50);
    expect(await client().status(options)).toMatchObject({ nodeId: 'n1' });
    connections[0]?.destroy();
    connections[1]?.end();
    const started = performance.now();
    await server.stop();
    expect(performance.now() - started).toBeLessThan(1_000);
    for (const connection of connections) connection.destroy();
  });

  test('a reader that never reads is not produced for', async () => {
    let produced = 0;
    class Endless extends FakeOperations {
      override async *events(_: boolean, { signal }: { readonly signal: AbortSignal }): AsyncIterable<NodeEvent> {
        while (!signal.aborted) {
          produced++;
          yield { sequence: 1n, time: 0, severity: 'info', subject: 's', message: 'x'.repeat(10_000) };
        }
      }
    }
    const { server, client } = await adminRig({ operations: new Endless() });
    await server.start();
    const abort = new AbortController();
    const events = client().events({ follow: true }, abort)[Symbol.asyncIterator]();
    await events.next();
    await sleep(200);
    const before = produced;
    await sleep(300);
    expect(produced).toBe(before);
    expect(produced).toBeLessThan(2_000);
    for (let read = 0; read < 3_000; read++) await events.next();
    expect(produced).toBeGreaterThan(before);
    abort.abort();
    expect((await events.next()).done).toBe(true);
  });

  test('a reader that goes away ends its stream', async () => {
    const ended = Promise.withResolvers<void>();
    class Noticing extends FakeOperations {
      override async *events(follow: boolean, callOptions: { readonly signal: AbortSignal }): AsyncIterable<NodeEvent> {
        try {
          yield* super.events(follow, callOptions);
        } finally {
          ended.resolve();
        }
      }
    }
    const operations = new Noticing();
    const { server, socket } = await adminRig({ operations });
    await server.start();
    operations.tell({ subject: 'a', message: 'one' });
    const client = new GrpcAdminClient(socket);
    const events = client.events({ follow: true }, options)[Symbol.asyncIterator]();
    await events.next();
    await events.return?.();
    client.close();
    await ended.promise;
  });
});

test('a stop with calls in flight ends them at once', async () => {
  const { server, client, view, clock } = await adminRig();
  await server.start();
  await view.stop();
  const selector = { kind: '', namespace: '', name: '', labels: '' };
  const calls = Array.from({ length: 10 }, () => client().watch({ selector }, options)[Symbol.asyncIterator]().next());
  const outcomes = Promise.allSettled(calls);
  await sleep(100);
  await server.stop();
  for (const outcome of await outcomes)
    expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'admin.unreachable' } });
  expect(clock.sleepers).toBe(0);
});
