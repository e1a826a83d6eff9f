import { hash } from 'node:crypto';
import { ContainerModule } from 'inversify';
import { FileBalancerConfig } from '../../adapters/loadbalancer/file-balancer-config.js';
import { HaproxyRuntime } from '../../adapters/loadbalancer/haproxy-runtime.js';
import { SystemdUnits } from '../../adapters/service/systemd-units.js';
import { BalancerKeeper } from '../../app/loadbalancer/balancer-keeper.js';
import { BalancerSubsystem } from '../../app/loadbalancer/balancer-subsystem.js';
import { FleetApiServers } from '../../app/loadbalancer/fleet-api-servers.js';
import { type AbsolutePath, under } from '../../domain/kernel/paths.js';
import { BALANCER_PORT } from '../../domain/loadbalancer/model.js';
import { FleetPorts, NodeSubsystems, Ports, Root, UseCases } from '../tokens.js';

/** As Debian's haproxy.service has them. */
const CONFIG_FILE = '/etc/haproxy/haproxy.cfg' as AbsolutePath;
const SOCKET = '/run/haproxy/admin.sock' as AbsolutePath;
/** Of a connection that says nothing. */
const REQUEST_SECONDS = 60;

/** The balancer of the cluster's API on an agent's machine. */
export const loadbalancerModule = new ContainerModule(({ bind }) => {
  bind(NodeSubsystems.balancer)
    .toResolvedValue(
      ({ paths }, { root }, commands, outbox, clock, logger, container) => {
        const socket = under(root, SOCKET);
        const file = under(root, CONFIG_FILE);
        const named = logger.child({ subsystem: 'loadbalancer' });
        const keeper = new BalancerKeeper({
          config: new FileBalancerConfig({ file, memoryFile: paths.apiServers, commands }),
          runtime: new HaproxyRuntime(socket),
          units: new SystemdUnits({ commands }),
          settings: { port: BALANCER_PORT, socket, requestSeconds: REQUEST_SECONDS },
          clock,
          logger: named,
          sha256: (text) => hash('sha256', text, 'hex'),
        });
        return new BalancerSubsystem({
          keeper,
          // The link speaks to the balancer, and the balancer asks by the link.
          ask: (type, jsonB64, timeoutMs, options) => container.get(NodeSubsystems.link).ask(type, jsonB64, timeoutMs, options),
          outbox,
          clock,
          random: Math.random,
          logger: named,
        });
      },
      [Root.facts, Root.node, Ports.commands, Ports.outbox, Ports.clock, Ports.logger, Root.container],
    )
    .inSingletonScope();
  bind(UseCases.apiBalancer).toResolvedValue((balancer) => () => balancer.status(), [NodeSubsystems.balancer]);
});

/** The API servers of a fleet, for its nodes. */
export const fleetApiServersModule = new ContainerModule(({ bind }) => {
  bind(FleetPorts.apiServers)
    .toResolvedValue(
      (presence, overlay, clock) => new FleetApiServers({ presence, overlay, clock }),
      [FleetPorts.presence, FleetPorts.overlay, Ports.clock],
    )
    .inSingletonScope();
});
