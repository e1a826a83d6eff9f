import { type HostPort, hostPort, type PortNumber } from '../../src/domain/kernel/network.js';

/** An endpoint that the test knows to be one. */
export function endpoint(text: string): HostPort {
  const found = hostPort(text, 6_443 as PortNumber);
  if (found === undefined) throw new Error(`no endpoint: ${text}`);
  return found;
}
