import { ContainerModule } from 'inversify';
import { bootTime } from '../../adapters/clock/boot-time.js';
import { NetlinkVirtualAddress } from '../../adapters/vip/netlink-virtual-address.js';
import { FleetVips } from '../../app/vip/fleet-vips.js';
import { VipCandidates } from '../../app/vip/vip-candidates.js';
import { VipEffect } from '../../app/vip/vip-effect.js';
import { VipKeeper } from '../../app/vip/vip-keeper.js';
import { vipStatus } from '../../app/vip/vip-status.js';
import { VipSubsystem } from '../../app/vip/vip-subsystem.js';
import type { IpAddress } from '../../domain/kernel/network.js';
import { FleetPorts, FleetUseCases, NodePorts, NodeSubsystems, Ports, Root, UseCases } from '../tokens.js';

/** A node that has no virtual IP answers what is said of one. */
export const noVipModule = new ContainerModule(({ bind }) => {
  bind(NodePorts.vipEffect).toConstantValue(new VipEffect(undefined, bootTime));
});

/** The virtual IP of an agent. */
export const vipModule = (address: IpAddress) =>
  new ContainerModule(({ bind }) => {
    bind(NodePorts.vipAddress)
      .toResolvedValue(
        ({ addon, config }) => new NetlinkVirtualAddress({ addon, address, interface: config.vipInterface }),
        [Root.facts],
      )
      .inSingletonScope();
    bind(NodePorts.vipKeeper)
      .toResolvedValue(
        ({ config }, virtual, journal, logger) =>
          new VipKeeper({
            address: virtual,
            journal,
            bootTime,
            onDisconnect: config.vipOnDisconnect,
            logger: logger.child({ subsystem: 'vip' }),
          }),
        [Root.facts, NodePorts.vipAddress, NodePorts.journal, Ports.logger],
      )
      .inSingletonScope();
    bind(NodePorts.vipEffect)
      .toResolvedValue((keeper) => new VipEffect(keeper, bootTime), [NodePorts.vipKeeper])
      .inSingletonScope();
    bind(NodeSubsystems.vip)
      .toResolvedValue(
        ({ rootFingerprint }, keeper, virtual, container, clock, logger) =>
          new VipSubsystem({
            keeper,
            address: virtual,
            ask: (type, jsonB64, timeoutMs, options) => container.get(NodeSubsystems.link).ask(type, jsonB64, timeoutMs, options),
            rootFingerprint: () => rootFingerprint,
            bootTime,
            clock,
            random: Math.random,
            logger: logger.child({ subsystem: 'vip' }),
          }),
        [Root.node, NodePorts.vipKeeper, NodePorts.vipAddress, Root.container, Ports.clock, Ports.logger],
      )
      .inSingletonScope();
    bind(UseCases.vipStatus)
      .toResolvedValue((keeper, clock) => () => vipStatus(address, keeper, clock, bootTime), [NodePorts.vipKeeper, Ports.clock])
      .inSingletonScope();
  });

/** The virtual IPs of a control plane. */
export const fleetVipModule = new ContainerModule(({ bind }) => {
  bind(FleetPorts.vips)
    .toResolvedValue(
      ({ store }, { config }, presence, registrations, cordons, book, events, container, clock, logger) =>
        new FleetVips({
          store,
          candidates: new VipCandidates({
            candidates: config.vipCandidates,
            presence,
            registrations,
            isCordoned: (nid) => cordons.has(nid),
          }),
          // They ask who has a stream, and whoever has one asks for the virtual IP.
          instructions: {
            send: (call, options) => container.get(FleetUseCases.instructions).send(call, options),
            get: (nid, tag, options) => container.get(FleetUseCases.instructions).get(nid, tag, options),
          },
          book,
          events,
          clock,
          random: Math.random,
          logger: logger.child({ subsystem: 'vip' }),
        }),
      [
        ...([Root.controlPlane, Root.facts, FleetPorts.presence, FleetUseCases.registrations, FleetPorts.cordons] as const),
        ...([FleetPorts.book, FleetPorts.events, Root.container, Ports.clock, Ports.logger] as const),
      ],
    )
    .inSingletonScope();
});
