import type { FleetDaemon } from './fleet-daemon.js';
import { inNamespace } from './in-namespace.js';

/** nft(8) on the machine of an agent. */
export function nft({ space }: FleetDaemon, ...words: readonly string[]): Promise<string> {
  return inNamespace(space, ['nft', ...words]);
}

/** Our table, without counters. `--handle` shows what was made anew. */
export function rulesOf(daemon: FleetDaemon, ...flags: readonly string[]): Promise<string> {
  return nft(daemon, '--stateless', ...flags, 'list', 'table', 'inet', 'holdfast');
}
