import { hash, randomUUID } from 'node:crypto';
import { ContainerModule } from 'inversify';
import { rootFingerprint } from '../../adapters/certificate/certificate-reader.js';
import { GrpcRenewalClient } from '../../adapters/certificate/grpc-renewal-client.js';
import { X509KeyMaker } from '../../adapters/certificate/x509-key-maker.js';
import { bootTime } from '../../adapters/clock/boot-time.js';
import { NetlinkLocalRoutes } from '../../adapters/dataplane/netlink-local-routes.js';
import { SqliteJournal } from '../../adapters/instruction/sqlite-journal.js';
import { SystemdServiceManager } from '../../adapters/instruction/systemd-service-manager.js';
import { ApiNodeRoles } from '../../adapters/kubernetes/api-node-roles.js';
import { parseYamlDocuments } from '../../adapters/kubernetes/yaml-documents.js';
import { GrpcControlLink } from '../../adapters/link/grpc-control-link.js';
import { GrpcNodewardCalls } from '../../adapters/link/grpc-nodeward-calls.js';
import { LinkConnections } from '../../adapters/link/link-connections.js';
import { GrpcLogConnection } from '../../adapters/log/grpc-log-connection.js';
import { SqliteViewStore } from '../../adapters/log/sqlite-view-store.js';
import { RenewalSubsystem } from '../../app/certificate/renewal-subsystem.js';
import { VipRoutesSubsystem } from '../../app/dataplane/vip-routes-subsystem.js';
import { EtcdRemovalEffect } from '../../app/etcd/etcd-removal-effect.js';
import { InstructionEngine } from '../../app/instruction/instruction-engine.js';
import { SealedJournal } from '../../app/instruction/sealed-journal.js';
import { LinkSubsystem } from '../../app/link/link-subsystem.js';
import { untilLinked } from '../../app/link/until-linked.js';
import { LocalLog } from '../../app/log/local-log.js';
import { RemoteLogConsumer } from '../../app/log/remote-log-consumer.js';
import { ViewKeeper } from '../../app/log/view-keeper.js';
import { ResourceService } from '../../app/resource/resource-service.js';
import type { Config } from '../../domain/config/model.js';
import { vipRange } from '../../domain/dataplane/vip.js';
import { formatIpv4Range } from '../../domain/kernel/network.js';
import { type AbsolutePath, under } from '../../domain/kernel/paths.js';
import { type Capability, NO_JOURNAL } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ProblemSource } from '../../ports/node/problem-source.js';
import type { EnrolledNode } from '../enrolled-node.js';
import { policyOf } from '../policy.js';
import { NodePorts, NodeSubsystems, Ports, Root, Subsystems, UseCases } from '../tokens.js';
import { ADMIN_CONFIG, TASK_ENV } from './kubernetes.js';
import { bindSessions } from './session.js';

/** What this agent does beyond the base protocol. */
const CAPABILITIES: readonly Capability[] = ['journal', 'result-ack', 'result-upload', 'live-output', 'cancel'];
/** What is restarted when the control plane asks for it. */
export const AGENT_UNIT = 'holdfast-agent.service';
/** Of a link that moves to a renewed certificate. */
const MOVE_OVER_MS = 60_000;

/** A node's dealings with its control plane. */
export const linkModule = new ContainerModule(({ bind }) => {
  bind(Ports.problems)
    .toResolvedValue(
      (node, container) => ({
        // Asked with `status`: some of them are made from what asks here.
        problems: () =>
          [
            node.pairs,
            container.get(Ports.audit),
            container.get(NodePorts.journal),
            ...[NodeSubsystems.logConsumer, NodePorts.viewKeeper, NodeSubsystems.vipRoutes].map((token) =>
              container.get<ProblemSource>(token),
            ),
            ...[NodeSubsystems.engine, NodeSubsystems.renewal, NodeSubsystems.link, NodeSubsystems.overlay].map((token) =>
              container.get<ProblemSource>(token),
            ),
            container.get(NodeSubsystems.balancer),
            ...(container.isBound(NodeSubsystems.vip) ? [container.get(NodeSubsystems.vip)] : []),
          ].flatMap((source) => source.problems()),
      }),
      [Root.node, Root.container],
    )
    .inSingletonScope();
  bind(NodePorts.linkFigures)
    .toResolvedValue(
      (container) => () => {
        const { connected, streams } = container.get(NodeSubsystems.link).state();
        const { waiting, running, unconfirmed, counts } = container.get(NodeSubsystems.engine).snapshot();
        const ended = Object.entries(counts).flatMap(([name, count]) => {
          const outcome = /^finished_(.+)$/.exec(name)?.[1];
          return outcome === undefined ? [] : [[outcome, count] as const];
        });
        const viewFresh = container.get(Subsystems.logConsumer).fresh();
        return {
          up: connected !== undefined,
          streams,
          viewFresh,
          waiting,
          running,
          unconfirmed,
          ended: Object.fromEntries(ended),
        };
      },
      [Root.container],
    )
    .inSingletonScope();
  bindLog(bind);
  bindInstructions(bind);
  bindSessions(bind);
  bindLink(bind);
});

type Bind = Parameters<ConstructorParameters<typeof ContainerModule>[0]>[0]['bind'];

function bindLog(bind: Bind): void {
  bind(NodePorts.remoteLog)
    .toResolvedValue(
      ({ identity }, node, connections, clock) =>
        new GrpcLogConnection({ connections, addresses: node.servers, nodeId: identity.nodeId, clock }),
      [Root.facts, Root.node, NodePorts.connections, Ports.clock],
    )
    .inSingletonScope();
  bind(Ports.log)
    .toResolvedValue((log) => log, [NodePorts.remoteLog])
    .inSingletonScope();
  bind(NodePorts.viewKeeper)
    .toResolvedValue(
      ({ paths }, { identity: { nid, registration, aid } }, clock, logger) =>
        new ViewKeeper({
          store: new SqliteViewStore(paths.viewDb),
          binding: { fleet: aid, nid, registration },
          clock,
          random: Math.random,
          logger: logger.child({ subsystem: 'log' }),
        }),
      [Root.facts, Root.node, Ports.clock, Ports.logger],
    )
    .inSingletonScope();
  bind(NodeSubsystems.logConsumer)
    .toResolvedValue(
      ({ config }, log, connections, keeper, clock, logger) => {
        const consumer = new RemoteLogConsumer({
          log,
          keeper,
          clock,
          bootTime,
          random: Math.random,
          logger: logger.child({ subsystem: 'log' }),
          staleAfterMs: config.staleAfterMs,
        });
        connections.onSettled(() => consumer.reachable());
        return consumer;
      },
      [Root.facts, NodePorts.remoteLog, NodePorts.connections, NodePorts.viewKeeper, Ports.clock, Ports.logger],
    )
    .inSingletonScope();
  bind(Subsystems.logConsumer)
    .toResolvedValue((consumer) => consumer, [NodeSubsystems.logConsumer])
    .inSingletonScope();
  bind(NodePorts.localLog)
    .toResolvedValue((view) => new LocalLog(view), [Subsystems.logConsumer])
    .inSingletonScope();
  bind(Ports.askedLog).toResolvedValue((log) => log, [NodePorts.localLog]);
  bind(UseCases.resources)
    .toResolvedValue(
      ({ config }, log, view, listeners, clock) =>
        new ResourceService({ log, view, listeners, clock, vipRange: vipRange(formatIpv4Range(config.vipRange)) }),
      [Root.facts, NodePorts.localLog, Subsystems.logConsumer, Ports.listeners, Ports.clock],
    )
    .inSingletonScope();
  bind(NodeSubsystems.vipRoutes)
    .toResolvedValue(
      ({ addon }, view, clock, logger) =>
        new VipRoutesSubsystem({ routes: new NetlinkLocalRoutes(addon), view, clock, random: Math.random, logger }),
      [Root.facts, Subsystems.logConsumer, Ports.clock, Ports.logger],
    )
    .inSingletonScope();
}

function bindInstructions(bind: Bind): void {
  bind(NodePorts.journal)
    .toResolvedValue(
      ({ paths }, { sealer }, clock, logger) =>
        new SealedJournal({ journal: new SqliteJournal({ file: paths.journalDb, clock }), sealer, logger }),
      [Root.facts, Root.node, Ports.clock, Ports.logger],
    )
    .inSingletonScope();
  bind(NodePorts.settings)
    .toResolvedValue(({ config }) => ({ current: config }), [Root.facts])
    .inSingletonScope();
  bind(NodePorts.effects)
    .toResolvedValue(
      (dnsmasq, etcd, helm, join, kubernetes, overlay, removal, upgrade, vip) => ({
        ...{ dnsmasq, helm, join, kubernetes, overlay, removal, upgrade, vip },
        etcd: new EtcdRemovalEffect(etcd),
      }),
      [
        ...([NodePorts.dnsmasq, NodePorts.etcd, NodePorts.helm, NodePorts.join, NodePorts.kubernetes] as const),
        ...([NodePorts.overlayEffect, NodePorts.removal, NodePorts.upgrade, NodePorts.vipEffect] as const),
      ],
    )
    .inSingletonScope();
  bind(NodeSubsystems.engine)
    .toResolvedValue(
      ({ config }, { machine, rootFingerprint }, journal, audit, settings, tasks, web, effects, agent, calls, clock, logger) =>
        new InstructionEngine({
          journal,
          audit,
          tasks,
          web,
          services: new SystemdServiceManager({ unit: AGENT_UNIT }),
          effects,
          newTag: randomUUID,
          upload: (reply, options) => calls.uploadReply(reply, options),
          clock,
          bootTime,
          logger: logger.child({ subsystem: 'instructions' }),
          policy: () => policyOf(settings.current),
          onAuditFailure: config.auditOnFailure,
          nodeIsReady: () => agent.states().every(({ phase }) => phase === 'ready'),
          sha256: (data) => hash('sha256', data, 'hex'),
          boot: machine.boot,
          rootFingerprint: () => rootFingerprint,
          sources: () => sourcesOf(settings.current),
          scriptEnv: TASK_ENV,
          reading: { yaml: parseYamlDocuments },
        }),
      [
        ...([Root.facts, Root.node, NodePorts.journal, Ports.audit, NodePorts.settings, NodePorts.tasks, NodePorts.web] as const),
        ...([NodePorts.effects, Root.agent, NodePorts.calls, Ports.clock, Ports.logger] as const),
      ],
    )
    .inSingletonScope();
}

function sourcesOf({ installer, conductor }: Config) {
  return { installer, conductor: conductor ?? conductorOf(installer) };
}

/** `https://get.example` has its scripts by path at `https://api.example`. */
function conductorOf(installer: string): string | undefined {
  const derived = installer.replace(/^(https?:\/\/)get\./, '$1api.');
  return derived === installer ? undefined : derived;
}

function bindLink(bind: Bind): void {
  bind(NodePorts.instance)
    .toResolvedValue(() => randomUUID(), [])
    .inSingletonScope();
  bind(NodePorts.connections)
    .toResolvedValue((node, clock) => new LinkConnections({ readPair: pairReader(node), clock }), [Root.node, Ports.clock])
    .inSingletonScope();
  bind(NodePorts.calls)
    .toResolvedValue(
      (connections, { servers }, container) => {
        // Where the stream is: calls are put on its connection.
        const address = () => {
          const { connected } = container.get<LinkSubsystem>(NodeSubsystems.link).state();
          const [first] = servers;
          return connected?.address ?? { host: first?.host ?? '', port: first?.port ?? 0 };
        };
        return new GrpcNodewardCalls({ connections, address });
      },
      [NodePorts.connections, Root.node, Root.container],
    )
    .inSingletonScope();
  bind(NodePorts.link)
    .toResolvedValue((connections, clock) => new GrpcControlLink({ connections, clock }), [NodePorts.connections, Ports.clock])
    .inSingletonScope();
  bind(NodeSubsystems.renewal)
    .toResolvedValue(
      (node, link, clock, logger, instance) => {
        const [first] = node.servers;
        const { boot, hardware } = node.machine;
        return new RenewalSubsystem({
          pairs: node.pairs,
          client: new GrpcRenewalClient({
            host: first?.host ?? '',
            port: first?.port ?? 0,
            now: () => clock.now(),
            caller: { instance, boot, hardware },
          }),
          keys: new X509KeyMaker(),
          clock,
          logger: logger.child({ subsystem: 'renewal' }),
          random: Math.random,
          linked: (options) => untilLinked(link, clock, options),
          fingerprintOf: rootFingerprint,
          // The log follows. A link that is down, or goes down meanwhile, comes back with the new pair by itself.
          onRenewed: () =>
            void link.moveOver({ signal: AbortSignal.timeout(MOVE_OVER_MS) }).catch((error: unknown) => {
              logger.warn('the link did not move to the new certificate at once', { error });
            }),
        });
      },
      [Root.node, NodeSubsystems.link, Ports.clock, Ports.logger, NodePorts.instance],
    )
    .inSingletonScope();
  bind(NodeSubsystems.link)
    .toResolvedValue(
      (
        { version, config, identity },
        { servers, machine, root },
        link,
        engine,
        overlay,
        balancer,
        sessions,
        upgradeLog,
        journal,
        audit,
        clock,
        logger,
        instance,
        container,
      ) => {
        const vip = container.isBound(NodeSubsystems.vip) ? [container.get(NodeSubsystems.vip)] : [];
        const inRoot = (path: string) => under(root, path as AbsolutePath);
        return new LinkSubsystem({
          link,
          addresses: servers,
          facts: () => ({
            instance,
            boot: machine.boot,
            hardware: machine.hardware,
            journal: journal.facts() ?? NO_JOURNAL,
            capabilities: new Set(CAPABILITIES),
          }),
          roles: new ApiNodeRoles({
            apiServerManifest: inRoot('/etc/kubernetes/manifests/kube-apiserver.yaml'),
            adminConfig: inRoot(ADMIN_CONFIG),
            kubeletConfig: inRoot('/etc/kubernetes/kubelet.conf'),
            localApi: { host: '127.0.0.1', port: 6443 },
            nodeName: identity.hostname,
          }),
          users: [...vip, engine, overlay, balancer, sessions, upgradeLog],
          version,
          nodeIp: config.nodeIp,
          auditHead: () => audit.head(),
          onRoot: (root, spreadMs) => container.get<RenewalSubsystem>(NodeSubsystems.renewal).rootIs(root, spreadMs),
          newTag: randomUUID,
          clock,
          bootTime,
          random: Math.random,
          logger: logger.child({ subsystem: 'link' }),
        });
      },
      [
        ...([Root.facts, Root.node, NodePorts.link, NodeSubsystems.engine, NodeSubsystems.overlay] as const),
        ...([NodeSubsystems.balancer, NodePorts.interactiveSessions, NodePorts.upgradeLog] as const),
        ...([NodePorts.journal, Ports.audit, Ports.clock, Ports.logger, NodePorts.instance] as const),
        Root.container,
      ],
    )
    .inSingletonScope();
}

/** The pair that is in use on disk when it is asked for. */
export function pairReader({ pairs }: Pick<EnrolledNode, 'pairs'>) {
  return async (options: CallOptions) => {
    const { current } = await pairs.load(options);
    if (current === undefined) throw new Error('the certificates of this node are gone');
    return current;
  };
}
