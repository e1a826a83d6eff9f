import { hash, randomUUID } from 'node:crypto';
import type { ContainerModule } from 'inversify';
import { WsServiceDialer } from '../../adapters/session/ws-service-dialer.js';
import type { NodeSessions } from '../../app/link/node-sessions.js';
import { SessionRelay } from '../../app/session/session-relay.js';
import { Sessions } from '../../app/session/sessions.js';
import { policyOf } from '../policy.js';
import { FleetPorts, FleetUseCases, NodePorts, Ports, Root } from '../tokens.js';

type Bind = Parameters<ConstructorParameters<typeof ContainerModule>[0]>[0]['bind'];

/** Interactive sessions, at a node. */
export function bindSessions(bind: Bind): void {
  bind(NodePorts.interactiveSessions)
    .toResolvedValue(
      ({ config }, audit, settings, logger) =>
        new Sessions({
          dialer: new WsServiceDialer(),
          audit,
          onAuditFailure: config.auditOnFailure,
          policy: () => policyOf(settings.current),
          sha256: (text) => hash('sha256', text, 'hex'),
          logger: logger.child({ subsystem: 'sessions' }),
        }),
      [Root.facts, Ports.audit, NodePorts.settings, Ports.logger],
    )
    .inSingletonScope();
}

/** And at a control plane. */
export function bindSessionRelay(bind: Bind): void {
  bind(FleetPorts.sessionRelay)
    .toResolvedValue(
      ({ serverId }, registrations, presence, container, clock) =>
        new SessionRelay({
          server: serverId,
          registrations,
          presence,
          nodes: () => container.get<NodeSessions>(FleetPorts.sessions),
          newId: randomUUID,
          clock,
        }),
      [Root.controlPlane, FleetUseCases.registrations, FleetPorts.presence, Root.container, Ports.clock],
    )
    .inSingletonScope();
}
