import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ControlStore } from '../../ports/store/control-store.js';

const FLEET_KEY = 'fleet/id';

/** Id of the fleet whose control plane the store is, made for a new one. The same for all replicas. @throws AgentError `store.unavailable` */
export async function fleetIdOf(store: ControlStore, newId: () => string, options: CallOptions): Promise<string> {
  const found = await store.get(FLEET_KEY, options);
  if (found !== undefined) return found.value;
  const made = newId();
  if ((await store.commit([{ key: FLEET_KEY, version: 0n }], [{ key: FLEET_KEY, value: made }], options)) !== undefined)
    return made;
  // Another replica has begun at the same time.
  const other = await store.get(FLEET_KEY, options);
  if (other === undefined) throw new AgentError('store.unavailable', { problem: `${FLEET_KEY} comes and goes` });
  return other.value;
}
