import { VIP_RANGE_KEY } from '../dataplane/vip.js';
import type { LogKey } from './model.js';

/**
 * What a node may read, by the first segment of a key; what is not named here, no node reads (engine.md E14). These say the same to all
 * nodes of the control plane, so that one encoding serves them all.
 */
const FAMILIES: ReadonlySet<string> = new Set([
  // Ports, endpoints and how traffic is carried: any node may be a client of any service.
  'service',
  'endpoints',
  // Which address a service has, and which ones rest.
  'vip',
  // What was found of endpoints by the nodes that host them.
  'health',
]);
/** Of `settings/`, which is the control plane's, this alone: nodes route the range. */
const KEYS: ReadonlySet<string> = new Set([VIP_RANGE_KEY]);

export function nodeReads(key: LogKey): boolean {
  const slash = key.indexOf('/');
  return FAMILIES.has(slash < 0 ? key : key.slice(0, slash)) || KEYS.has(key);
}
