import { ContainerModule } from 'inversify';
import type { Addon } from '../../adapters/dataplane/addon.js';
import { NetlinkConntrack } from '../../adapters/dataplane/netlink-conntrack.js';
import { NftPacketFilter } from '../../adapters/dataplane/nft-packet-filter.js';
import { ProcSysctls } from '../../adapters/dataplane/proc-sysctls.js';
import { KernelPathSubsystem } from '../../app/dataplane/kernel-path-subsystem.js';
import type { Config } from '../../domain/config/model.js';
import { defaultMarks, type FilterMarks } from '../../domain/dataplane/kernel-model.js';
import type { Facts } from '../facts.js';
import { Ports, Root, Subsystems } from '../tokens.js';

/** A table that is gone with the batch that makes it. */
const PROBE = `holdfast-probe-${process.pid}`;

/** Rules in the kernel, for a node that has them. */
export const kernelPathModule = new ContainerModule(({ bind }) => {
  bind(Ports.packetFilter)
    .toResolvedValue(({ addon, config }) => new NftPacketFilter(addon, { owner: config.tableOwner }), [Root.facts])
    .inSingletonScope();
  bind(Subsystems.kernelPath)
    .toResolvedValue(
      ({ addon, config, identity, paths }, view, filter, moves, clock, logger, outbox) =>
        new KernelPathSubsystem({
          ...{ nodeId: identity.nodeId, view, filter, moves, clock, outbox },
          conntrack: new NetlinkConntrack(addon),
          sysctls: new ProcSysctls(paths.sysctls),
          marks: marksOf(config),
          manageSysctls: config.manageSysctls,
          wantsOwner: config.tableOwner,
          random: Math.random,
          logger: logger.child({ subsystem: 'kernel-path' }),
        }),
      [Root.facts, Subsystems.logConsumer, Ports.packetFilter, Ports.pathMoves, Ports.clock, Ports.logger, Ports.outbox],
    )
    .inSingletonScope();
});

function marksOf({ markBits: { carried, cut } }: Config): FilterMarks {
  return { ...defaultMarks, ours: (1 << carried) >>> 0, cut: (1 << cut) >>> 0 };
}

/** Whether the kernel carries services on this node. */
export function kernelCarries({ mode, config, addon }: Pick<Facts, 'mode' | 'config' | 'addon'>): boolean {
  if (mode === 'dev' || config.dataPath === 'proxy') return false;
  return config.dataPath === 'kernel' || hasPacketFilter(addon);
}

/** Whether this process may use nf_tables, and the kernel has it. */
function hasPacketFilter(addon: Addon): boolean {
  try {
    const socket = new addon.NftSocket();
    try {
      socket.dump('table');
      socket.apply([
        { kind: 'table', table: PROBE },
        { kind: 'remove', table: PROBE },
      ]);
      return true;
    } finally {
      socket.close();
    }
  } catch {
    return false;
  }
}
