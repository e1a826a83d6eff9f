import type { FleetDaemon } from './fleet-daemon.js';
import { inNamespace } from './in-namespace.js';

/** nft(8) on the machine of an agent. */
export function nft({ space }: FleetDaemon, ...words: readonly string[]): Promise<string> {
  return inNamespace(space, ['nft', ...words]);
}

/** Our table, without counters. */
export function rulesOf(daemon: FleetDaemon): Promise<string> {
  return nft(daemon, '--stateless', 'list', 'table', 'inet', 'holdfast');
}
