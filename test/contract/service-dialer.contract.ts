import { describe, expect, onTestFinished, test } from 'vitest';
import { portNumber } from '../../src/domain/kernel/network.js';
import type { SessionTarget } from '../../src/domain/session/model.js';
import type { ServiceDialer, ServiceSocket } from '../../src/ports/session/service-dialer.js';

export const options = { signal: new AbortController().signal };

export interface ServiceDialerRig {
  readonly dialer: ServiceDialer;
  /** Of a service that answers each text with `<text>`, says 1,000 times 16 KiB to `flood`, and ends when it is told `bye`. */
  readonly port: number;
  /** Nothing listens there. */
  readonly closedPort: number;
  /** Connections that the service has. */
  readonly connections: () => number;
}

export function targetOf(port: number, more: Partial<SessionTarget> = {}): SessionTarget {
  const number = portNumber(port);
  if (number === undefined) throw new Error(`not a port: ${port}`);
  return { namespace: 'shop', name: 'api', port: number, path: '', headers: {}, subprotocols: [], size: undefined, ...more };
}

/** Reads until `bytes` have come, or to the end. */
export async function readSome(socket: ServiceSocket, bytes = Number.POSITIVE_INFINITY): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of socket.output) {
    parts.push(part);
    length += part.length;
    if (length >= bytes) break;
  }
  return Buffer.concat(parts);
}

/** Every ServiceDialer must pass. */
export function serviceDialerContract(name: string, make: () => Promise<ServiceDialerRig>): void {
  describe(`ServiceDialer: ${name}`, () => {
    const opened = async () => {
      const rig = await make();
      const socket = await rig.dialer.open(targetOf(rig.port), options);
      onTestFinished(() => socket.close());
      return { ...rig, socket };
    };

    test('carries text there and whatever the service says back, in order', async () => {
      const { socket } = await opened();
      for (const text of ['a', 'b€', 'c']) socket.send(text);
      expect((await readSome(socket, 11)).toString()).toBe('<a><b€><c>');
    });

    test('says how the service ended it, after all that it has said', async () => {
      const { socket } = await opened();
      socket.send('last');
      socket.send('bye');
      expect((await readSome(socket)).toString()).toBe('<last>');
      expect(await socket.ended).toEqual({ reason: expect.stringMatching(/^the service closed the session/), error: false });
      socket.send('too late');
    });

    test('loses nothing of a service that says more than is read', async () => {
      const { socket } = await opened();
      socket.send('flood');
      await new Promise((resolve) => setTimeout(resolve, 50));
      socket.send('bye');
      expect(await readSome(socket)).toHaveLength(1_000 * 16_384);
    });

    test('is over when it is closed, for its reader too; twice is once', async () => {
      const { socket, connections } = await opened();
      await expect.poll(connections).toBe(1);
      const read = readSome(socket);
      socket.close();
      socket.close();
      expect(await read).toHaveLength(0);
      await socket.ended;
      await expect.poll(connections).toBe(0);
    });

    test('names what cannot be reached', async () => {
      const { dialer, closedPort } = await make();
      const failure = dialer.open(targetOf(closedPort), options);
      await expect(failure).rejects.toMatchObject({ code: 'session.unreachable' });
    });

    test('an abort leaves nothing open', async () => {
      const { dialer, port, connections } = await make();
      await expect(dialer.open(targetOf(port), { signal: AbortSignal.abort(new Error('gone')) })).rejects.toThrow('gone');
      const abort = new AbortController();
      const dial = dialer.open(targetOf(port), { signal: abort.signal });
      abort.abort(new Error('gone'));
      await expect(dial).rejects.toThrow('gone');
      await expect.poll(connections).toBe(0);
    });
  });
}
