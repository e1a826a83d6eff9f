import { connect } from 'node:net';
import type { IpAddress, PortNumber } from '../../domain/kernel/network.js';

/** Resolves when the connection stands; rejects with the socket's error, or any on abort. */
export function probeTcp(host: IpAddress, port: PortNumber, signal: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect({ host, port, autoSelectFamily: false });
  const onAbort = () => reject(signal.reason);
  socket.once('connect', () => resolve(''));
  socket.on('error', reject);
  signal.addEventListener('abort', onAbort, { once: true });
  return promise.finally(() => {
    signal.removeEventListener('abort', onAbort);
    socket.destroy();
  });
}
