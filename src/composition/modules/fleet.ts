import { randomBytes, randomUUID } from 'node:crypto';
import { ContainerModule } from 'inversify';
import { nodePeerJudge } from '../../adapters/certificate/node-peer-judge.js';
import { GrpcEnrolmentServer } from '../../adapters/link/grpc-enrolment-server.js';
import { GrpcNodeServer } from '../../adapters/link/grpc-node-server.js';
import { LogServiceHandler } from '../../adapters/log/grpc-log-handler.js';
import { logServiceDefinition, logServiceImplementation } from '../../adapters/log/grpc-log-service.js';
import { sha256 } from '../../adapters/log/sha256.js';
import { type EnrolmentEvent, EnrolmentService } from '../../app/certificate/enrolment-service.js';
import { EnrolmentSubsystem } from '../../app/certificate/enrolment-subsystem.js';
import { EnrolmentView } from '../../app/certificate/enrolment-view.js';
import { RegistrationService } from '../../app/certificate/registration-service.js';
import { ServerPairSubsystem } from '../../app/certificate/server-pair-subsystem.js';
import { TokenService } from '../../app/certificate/token-service.js';
import { DispatchService } from '../../app/dispatch/dispatch-service.js';
import { Dispatcher } from '../../app/dispatch/dispatcher.js';
import { FinishedSweep } from '../../app/dispatch/finished-sweep.js';
import { InstructionBodies } from '../../app/dispatch/instruction-bodies.js';
import { InstructionBook } from '../../app/dispatch/instruction-book.js';
import { Cordons } from '../../app/fleet/cordons.js';
import { FleetNodesService } from '../../app/fleet/fleet-nodes-service.js';
import { FleetSubsystem } from '../../app/fleet/fleet-subsystem.js';
import { NodeEvents } from '../../app/fleet/node-events.js';
import { NodeCallsService } from '../../app/link/node-calls-service.js';
import { NodeSessions } from '../../app/link/node-sessions.js';
import { PresenceBoard } from '../../app/link/presence-board.js';
import { BoundNodeNames } from '../../app/log/bound-node-names.js';
import { GuardedProposals } from '../../app/log/guarded-proposals.js';
import { SyncedPeers } from '../../app/overlay/synced-peers.js';
import { WINDOW } from '../../domain/dispatch/model.js';
import type { AddressPort } from '../../domain/kernel/network.js';
import type { Capability, Nid } from '../../domain/link/model.js';
import { nodeReads } from '../../domain/log/visibility.js';
import { FleetPorts, FleetServers, FleetSubsystems, FleetUseCases, Ports, Root, Subsystems } from '../tokens.js';
import { bindSessionRelay } from './session.js';

/** What this control plane does beyond the base protocol. */
const CAPABILITIES: readonly Capability[] = ['redeliver', 'result-ack', 'result-upload', 'cancel', 'keepalive', 'window'];

const listenOf = ({ address, port }: AddressPort) => ({ host: address, port });

/** The nodes of a control plane: how they are let in, what they are told to do, and what they are sent of the log. */
export const fleetModule = new ContainerModule(({ bind }) => {
  bind(FleetPorts.events)
    .toResolvedValue((outbox, clock) => new NodeEvents(outbox, clock), [Ports.outbox, Ports.clock])
    .inSingletonScope();
  bind(FleetPorts.enrolmentView)
    .toResolvedValue(
      ({ store }, clock, logger) => new EnrolmentView({ store, clock, logger, random: Math.random }),
      [Root.controlPlane, Ports.clock, Ports.logger],
    )
    .inSingletonScope();
  bind(FleetUseCases.enrolment)
    .toResolvedValue(
      ({ store, authorities }, view, audit, clock, logger, events, overlay) =>
        new EnrolmentService({
          store,
          view,
          authority: authorities.l2,
          audit,
          clock,
          logger: logger.child({ subsystem: 'enrolment' }),
          sha256,
          randomBytes,
          onEvent: (event) => tellEnrolment(events, event),
          onRegistered: ({ nid, aid }, options) => overlay.admit(nid, aid, options),
        }),
      [
        ...([Root.controlPlane, FleetPorts.enrolmentView, Ports.audit, Ports.clock, Ports.logger] as const),
        ...([FleetPorts.events, FleetPorts.overlay] as const),
      ],
    )
    .inSingletonScope();
  bind(FleetSubsystems.enrolment)
    .toResolvedValue(
      ({ store }, view, service, clock, logger) =>
        new EnrolmentSubsystem({ store, view, service, clock, logger, random: Math.random }),
      [Root.controlPlane, FleetPorts.enrolmentView, FleetUseCases.enrolment, Ports.clock, Ports.logger],
    )
    .inSingletonScope();
  bind(FleetUseCases.tokens)
    .toResolvedValue(
      ({ store }, clock) => new TokenService({ store, clock, sha256, randomBytes }),
      [Root.controlPlane, Ports.clock],
    )
    .inSingletonScope();
  bind(FleetUseCases.registrations)
    .toResolvedValue(({ store }, clock) => new RegistrationService({ store, clock }), [Root.controlPlane, Ports.clock])
    .inSingletonScope();
  bindInstructions(bind);
  bindSessionRelay(bind);
  bindServers(bind);
});

function tellEnrolment(events: NodeEvents, event: EnrolmentEvent): void {
  const subject = event.what === 'foreign_token' ? 'enrolment' : `node ${event.nid}`;
  events.tell('warning', subject, describeEnrolment(event));
}

function describeEnrolment(event: EnrolmentEvent): string {
  switch (event.what) {
    case 'foreign_token':
      return `token ${event.tokenId}, used before, was tried by machine ${event.machineId} at ${event.address}`;
    case 'foreign_renewal': {
      const which = `another machine than has the stream (${event.current}) asked for its next certificate, from ${event.address}`;
      return `${which}: ${event.refused ? 'refused' : 'given, as to an older agent'}`;
    }
  }
}

type Bind = Parameters<ConstructorParameters<typeof ContainerModule>[0]>[0]['bind'];

function bindInstructions(bind: Bind): void {
  const common = [Root.controlPlane, Ports.clock, Ports.logger] as const;
  bind(FleetPorts.presence)
    .toResolvedValue(
      ({ store, serverId, clocks }, clock, logger) => new PresenceBoard({ store, clock, logger, server: serverId, clocks }),
      [...common],
    )
    .inSingletonScope();
  bind(FleetPorts.cordons)
    .toResolvedValue(({ store }, clock, logger) => new Cordons({ store, clock, logger }), [...common])
    .inSingletonScope();
  bind(FleetPorts.book)
    .toResolvedValue(({ store }, clock, logger) => new InstructionBook({ store, clock, logger }), [...common])
    .inSingletonScope();
  bind(FleetPorts.bodies)
    .toResolvedValue(({ store, sealer }) => new InstructionBodies({ store, sealer, sha256 }), [Root.controlPlane])
    .inSingletonScope();
  bind(FleetPorts.dispatcher)
    .toResolvedValue(
      ({ store }, clock, logger, book, bodies, cordons) => {
        const heldBack = heldBackBy(cordons);
        return new Dispatcher({ store, clock, logger, book, bodies, newId: randomUUID, heldBack });
      },
      [...common, FleetPorts.book, FleetPorts.bodies, FleetPorts.cordons],
    )
    .inSingletonScope();
  bind(FleetPorts.sessions)
    .toResolvedValue(
      ({ store, fleetId, serverId }, clock, logger, presence, dispatcher, relay, vips, book, cordons, apiServers) =>
        new NodeSessions({
          store,
          clock,
          logger: logger.child({ subsystem: 'link' }),
          presence,
          fleet: fleetId,
          server: serverId,
          capabilities: new Set(CAPABILITIES),
          window: WINDOW,
          users: [dispatcher, relay, vips, apiServers],
          newId: randomUUID,
          isReady: () => book.hasLoaded && cordons.hasLoaded,
          vip: (node) => vips.word(node),
        }),
      [
        ...([...common, FleetPorts.presence, FleetPorts.dispatcher, FleetPorts.sessionRelay] as const),
        ...([FleetPorts.vips, FleetPorts.book, FleetPorts.cordons, FleetPorts.apiServers] as const),
      ],
    )
    .inSingletonScope();
  bind(FleetUseCases.instructions)
    .toResolvedValue(
      ({ store }, clock, book, bodies, registrations, sessions, cordons) =>
        new DispatchService({
          store,
          clock,
          book,
          bodies,
          registrations,
          newId: randomUUID,
          sessions,
          heldBack: heldBackBy(cordons),
        }),
      [
        Root.controlPlane,
        Ports.clock,
        FleetPorts.book,
        FleetPorts.bodies,
        FleetUseCases.registrations,
        FleetPorts.sessions,
        FleetPorts.cordons,
      ],
    )
    .inSingletonScope();
  bind(FleetUseCases.nodes)
    .toResolvedValue(
      ({ store }, clock, registrations, presence, sessions, cordons, book, overlay, log, view, names) =>
        new FleetNodesService({ store, clock, registrations, presence, sessions, cordons, book, overlay, log, view, names }),
      [
        Root.controlPlane,
        Ports.clock,
        FleetUseCases.registrations,
        FleetPorts.presence,
        FleetPorts.sessions,
        FleetPorts.cordons,
        FleetPorts.book,
        FleetPorts.overlay,
        Ports.log,
        Subsystems.logConsumer,
        FleetPorts.names,
      ],
    )
    .inSingletonScope();
  bind(FleetSubsystems.fleet)
    .toResolvedValue(
      ({ store }, clock, logger, presence, cordons, book, dispatcher, sessions, revocations, overlay, pushes, vips) =>
        new FleetSubsystem({
          presence,
          cordons,
          book,
          dispatcher,
          sessions,
          sweep: new FinishedSweep({ store, clock, logger, book }),
          revocations,
          overlay,
          pushes,
          vips,
        }),
      [
        ...common,
        FleetPorts.presence,
        FleetPorts.cordons,
        FleetPorts.book,
        FleetPorts.dispatcher,
        FleetPorts.sessions,
        FleetPorts.enrolmentView,
        FleetPorts.overlay,
        FleetPorts.peerPushes,
        FleetPorts.vips,
      ],
    )
    .inSingletonScope();
}

function heldBackBy(cordons: Cordons): (nid: Nid) => string {
  return (nid) => (cordons.has(nid) ? 'the node to be uncordoned' : '');
}

function bindServers(bind: Bind): void {
  bind(FleetPorts.names)
    .toResolvedValue(({ store }) => new BoundNodeNames(store), [Root.controlPlane])
    .inSingletonScope();
  bind(FleetSubsystems.nodeProposals)
    .toResolvedValue(
      (log, view, clock, names) => new GuardedProposals({ log, view, clock, nodeIdOf: (node) => names.nameOf(node) }),
      [Ports.log, Subsystems.logConsumer, Ports.clock, FleetPorts.names],
    )
    .inSingletonScope();
  bind(FleetPorts.logHandler)
    .toResolvedValue(
      (log, proposals, clock) => new LogServiceHandler({ log, proposals, reads: nodeReads, clock }),
      [Ports.log, FleetSubsystems.nodeProposals, Ports.clock],
    )
    .inSingletonScope();
  for (const port of ['l1', 'l2'] as const) {
    const server = port === 'l1' ? FleetServers.registration : FleetServers.nodes;
    bind(FleetSubsystems[port])
      .toResolvedValue(
        ({ own, serverId, hosts }, clock, logger, container) =>
          new ServerPairSubsystem({
            own,
            port,
            server: serverId,
            hosts,
            clock,
            random: Math.random,
            logger,
            onRenewed: () => container.get<{ reload(): void }>(server).reload(),
          }),
        [Root.controlPlane, Ports.clock, Ports.logger, Root.container],
      )
      .inSingletonScope();
  }
  bind(FleetServers.registration)
    .toResolvedValue(
      ({ config }, pairs, enrolment, logger) =>
        new GrpcEnrolmentServer({
          listen: listenOf(config.serverL1Listen),
          pair: () => ({ ...pairs.pair(), clientRoots: [] }),
          enrolment,
          logger: logger.child({ subsystem: 'registration' }),
        }),
      [Root.facts, FleetSubsystems.l1, FleetUseCases.enrolment, Ports.logger],
    )
    .inSingletonScope();
  bind(FleetServers.nodes)
    .toResolvedValue(
      (
        { config },
        { authorities },
        pairs,
        enrolment,
        view,
        sessions,
        dispatcher,
        handler,
        names,
        clock,
        logger,
        events,
        overlay,
        pushes,
        apiServers,
      ) => {
        const nodeLogger = logger.child({ subsystem: 'nodes' });
        return new GrpcNodeServer({
          listen: listenOf(config.serverL2Listen),
          pair: () => ({ ...pairs.pair(), clientRoots: [authorities.l2.root] }),
          judgePeer: nodePeerJudge({ root: authorities.l2.root, revocations: view, now: () => clock.now() }),
          streams: sessions,
          calls: new NodeCallsService(
            {
              status: ({ identity }, text) => events.status(identity.nid, text),
              nodelog: ({ identity }, entry) => events.nodelog(identity.nid, entry),
              uploaded: (node, reply) => dispatcher.uploaded(node, reply),
            },
            new SyncedPeers(overlay, pushes),
            (account) => apiServers.of(account),
          ),
          enrolment,
          revocations: view,
          services: [
            {
              definition: logServiceDefinition,
              implement: (nodeOf) => logServiceImplementation({ handler, peerOf: nodeOf, names, clock, logger: nodeLogger }),
            },
          ],
          clock,
          logger: nodeLogger,
        });
      },
      [
        Root.facts,
        Root.controlPlane,
        FleetSubsystems.l2,
        FleetUseCases.enrolment,
        FleetPorts.enrolmentView,
        FleetPorts.sessions,
        FleetPorts.dispatcher,
        FleetPorts.logHandler,
        FleetPorts.names,
        Ports.clock,
        Ports.logger,
        FleetPorts.events,
        FleetPorts.overlay,
        FleetPorts.peerPushes,
        FleetPorts.apiServers,
      ],
    )
    .inSingletonScope();
}
