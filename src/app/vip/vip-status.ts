import type { IpAddress } from '../../domain/kernel/network.js';
import type { Clock } from '../../ports/clock.js';
import type { VipStatus } from '../../ports/driving/operations.js';
import type { VipKeeper } from './vip-keeper.js';

/** The virtual IP, for those who operate the node. */
export function vipStatus(
  address: IpAddress,
  keeper: Pick<VipKeeper, 'state'>,
  clock: Pick<Clock, 'now'>,
  bootTime: () => number,
): VipStatus {
  const { hold, since, isAlone, counts } = keeper.state();
  const now = bootTime();
  return {
    address,
    held: hold.until !== undefined,
    since: clock.now() - (now - since),
    leftMs: hold.until === undefined ? 0 : Math.max(0, hold.until - now),
    generation: hold.generation,
    alone: isAlone,
    counts,
  };
}
