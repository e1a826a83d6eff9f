import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { HostPort } from '../../domain/kernel/network.js';
import type { PreflightFacts } from '../../domain/preflight/model.js';

const ATTEMPTS = 3;
const ATTEMPT_MS = 1_000;
const PROBE_BYTES = 32;

/** Sends 32 bytes of chance until they come back, thrice at most; anything else that comes is no answer. Rejects on abort. */
export async function askUdpEcho({ host, port }: HostPort, signal: AbortSignal): Promise<PreflightFacts['udpEcho']> {
  const probe = randomBytes(PROBE_BYTES);
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  try {
    socket.connect(port, host);
    await once(socket, 'connect', { signal });
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      socket.send(probe);
      if (await comesBack(socket, probe, signal)) return 'answered';
    }
    return { failed: `nothing came back in ${ATTEMPTS} attempts of ${ATTEMPT_MS / 1000} s` };
  } catch (error) {
    signal.throwIfAborted();
    return { failed: error instanceof Error ? error.message : String(error) };
  } finally {
    socket.close();
  }
}

async function comesBack(socket: ReturnType<typeof createSocket>, probe: Buffer, signal: AbortSignal): Promise<boolean> {
  const limit = AbortSignal.timeout(ATTEMPT_MS);
  try {
    for (;;) {
      const [message] = await once(socket, 'message', { signal: AbortSignal.any([signal, limit]) });
      if (Buffer.isBuffer(message) && message.equals(probe)) return true;
    }
  } catch (error) {
    if (limit.aborted) return false;
    throw error;
  }
}
