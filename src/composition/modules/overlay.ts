import { hash } from 'node:crypto';
import { ContainerModule } from 'inversify';
import { systemdRunPath } from '../../adapters/instruction/runner-process.js';
import { GrpcNodewardCalls } from '../../adapters/link/grpc-nodeward-calls.js';
import { OverlayKeyFile } from '../../adapters/overlay/overlay-key-file.js';
import { UfwRanges } from '../../adapters/overlay/ufw-ranges.js';
import { WgOverlayDevice } from '../../adapters/overlay/wg-overlay-device.js';
import { FleetOverlay } from '../../app/overlay/fleet-overlay.js';
import { OverlayEffect } from '../../app/overlay/overlay-effect.js';
import { OverlayKeeper } from '../../app/overlay/overlay-keeper.js';
import { overlayStatus } from '../../app/overlay/overlay-status.js';
import { OverlaySubsystem } from '../../app/overlay/overlay-subsystem.js';
import { PeerPushes } from '../../app/overlay/peer-pushes.js';
import type { Config } from '../../domain/config/model.js';
import { FleetPorts, FleetUseCases, NodePorts, NodeSubsystems, Ports, Root, UseCases } from '../tokens.js';

/** The overlay of an agent. */
export const overlayModule = new ContainerModule(({ bind }) => {
  bind(NodePorts.overlayKeeper)
    .toResolvedValue(
      ({ paths }, commands, clock, logger) => {
        const device = new WgOverlayDevice({
          commands,
          key: new OverlayKeyFile(paths.overlayKey),
          firewall: new UfwRanges(commands),
          systemdRun: systemdRunPath(),
        });
        return new OverlayKeeper({ device, clock, logger: logger.child({ subsystem: 'overlay' }) });
      },
      [Root.facts, Ports.commands, Ports.clock, Ports.logger],
    )
    .inSingletonScope();
  bind(NodePorts.overlayEffect)
    .toResolvedValue(
      // The link speaks to the engine, and the overlay hears of the link.
      (keeper, container) => new OverlayEffect(keeper, () => container.get(NodeSubsystems.overlay).endpoint()),
      [NodePorts.overlayKeeper, Root.container],
    )
    .inSingletonScope();
  bind(NodeSubsystems.overlay)
    .toResolvedValue(
      ({ config }, { servers }, keeper, connections, agent, container, clock, logger) => {
        const address = () => {
          const linked = container.get(NodeSubsystems.link).state().connected?.address;
          return linked ?? servers[0] ?? { host: '', port: 0 };
        };
        return new OverlaySubsystem({
          keeper,
          calls: new GrpcNodewardCalls({ connections, address }),
          nodeIsReady: () => agent.states().every(({ phase }) => phase === 'ready'),
          endpoint: endpointOf(config),
          networks: config.overlayNetworks,
          clock,
          random: Math.random,
          logger: logger.child({ subsystem: 'overlay' }),
        });
      },
      [
        ...([Root.facts, Root.node, NodePorts.overlayKeeper, NodePorts.connections, Root.agent, Root.container] as const),
        Ports.clock,
        Ports.logger,
      ],
    )
    .inSingletonScope();
  bind(UseCases.overlayStatus)
    .toResolvedValue(
      (keeper, clock) => () => overlayStatus(keeper.reading(), clock.monotonic()),
      [NodePorts.overlayKeeper, Ports.clock],
    )
    .inSingletonScope();
});

/** Empty: none. Undefined: the connection's. */
function endpointOf({ overlayEndpoint, nodeIp }: Config): string | undefined {
  return overlayEndpoint === 'none' ? '' : (overlayEndpoint ?? nodeIp);
}

/** The overlay of a control plane. */
export const fleetOverlayModule = new ContainerModule(({ bind }) => {
  bind(FleetPorts.overlay)
    .toResolvedValue(
      ({ store }, { config }, clock, logger) => new FleetOverlay({ store, clock, logger, range: config.overlayCidr }),
      [Root.controlPlane, Root.facts, Ports.clock, Ports.logger],
    )
    .inSingletonScope();
  bind(FleetPorts.peerPushes)
    .toResolvedValue(
      (overlay, instructions, sessions, clock, logger) =>
        new PeerPushes({
          overlay,
          instructions,
          sessions,
          clock,
          random: Math.random,
          logger: logger.child({ subsystem: 'overlay' }),
          sha256: (text) => hash('sha256', text, 'hex'),
        }),
      [FleetPorts.overlay, FleetUseCases.instructions, FleetPorts.sessions, Ports.clock, Ports.logger],
    )
    .inSingletonScope();
});
