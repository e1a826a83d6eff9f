import { dataplaneRemoval } from '../dataplane/removal.js';
import { dnsmasqRemoval } from '../dnsmasq/removal.js';
import { instructionRemoval } from '../instruction/removal.js';
import { kubernetesRemoval } from '../kubernetes/removal.js';
import { loadbalancerRemoval } from '../loadbalancer/removal.js';
import { overlayRemoval } from '../overlay/removal.js';
import { agentRemoval, stateRemoval } from './agent.js';
import type { Removal, RemovalPlaces, RemovalScope, RemovalStep } from './model.js';

/** In the order in which they are undone: first who would make it anew, last what later steps know their own by. */
const removals: readonly Removal[] = [
  agentRemoval,
  instructionRemoval,
  kubernetesRemoval,
  dnsmasqRemoval,
  loadbalancerRemoval,
  dataplaneRemoval,
  overlayRemoval,
  stateRemoval,
];

/** Everything that goes, in order. The same plan again ends at the same machine, from wherever it was left. */
export function planRemoval(places: RemovalPlaces, scope: RemovalScope): readonly RemovalStep[] {
  return removals.flatMap(({ capability, steps }) => steps(places, scope).map((step) => ({ capability, ...step })));
}

/**
 * Entries of a folder that are known by these names: the name itself, or the name with what a program of ours has put behind it
 * (`journal.db-wal`, `audit.log.3`). In the order of the names.
 */
export function ownEntries(names: readonly string[], entries: readonly string[]): readonly string[] {
  const own = names.flatMap((name) =>
    entries.filter((entry) => entry === name || (/^[-.]/.test(entry.slice(name.length)) && entry.startsWith(name))),
  );
  return [...new Set(own)];
}
