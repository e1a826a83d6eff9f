import { createHash } from 'node:crypto';
import { parseYamlDocuments } from '../../src/adapters/kubernetes/yaml-documents.js';
import { DnsmasqEffect } from '../../src/app/dnsmasq/dnsmasq-effect.js';
import { EtcdMembershipService } from '../../src/app/etcd/etcd-membership-service.js';
import { EtcdRemovalEffect } from '../../src/app/etcd/etcd-removal-effect.js';
import type { CapabilityEffects } from '../../src/app/instruction/effects.js';
import { InstructionEngine, type InstructionEngineParts } from '../../src/app/instruction/instruction-engine.js';
import { SealedJournal } from '../../src/app/instruction/sealed-journal.js';
import { ClusterPrograms } from '../../src/app/kubernetes/cluster-programs.js';
import { HelmEffect } from '../../src/app/kubernetes/helm-effect.js';
import { JoinEffect } from '../../src/app/kubernetes/join-effect.js';
import { KubernetesEffect } from '../../src/app/kubernetes/kubernetes-effect.js';
import type { LinkSession } from '../../src/app/link/link-session.js';
import { OverlayEffect } from '../../src/app/overlay/overlay-effect.js';
import { OverlayKeeper } from '../../src/app/overlay/overlay-keeper.js';
import { RemovalEffect } from '../../src/app/uninstall/removal-effect.js';
import { RemovalOrders } from '../../src/app/uninstall/removal-orders.js';
import { VipEffect } from '../../src/app/vip/vip-effect.js';
import type { VipKeeper } from '../../src/app/vip/vip-keeper.js';
import { USUAL_POLICY } from '../../src/domain/instruction/policy.js';
import type { AbsolutePath } from '../../src/domain/kernel/paths.js';
import type { Capability, Epoch, LinkMessage, ServerFacts, ServerMessage } from '../../src/domain/link/model.js';
import { FakeAuditLog } from '../fakes/fake-audit-log.js';
import { FakeClock } from '../fakes/fake-clock.js';
import { FakeCommandRunner } from '../fakes/fake-command-runner.js';
import { FakeDnsmasqConfig } from '../fakes/fake-dnsmasq-config.js';
import { FakeEtcdMembers } from '../fakes/fake-etcd-members.js';
import { FakeJoinSecrets } from '../fakes/fake-join-secrets.js';
import { FakeJournal, FakeJournalDisk } from '../fakes/fake-journal.js';
import { FakeLogger } from '../fakes/fake-logger.js';
import { FakeMachineFiles } from '../fakes/fake-machine-files.js';
import { FakeOverlayDevice } from '../fakes/fake-overlay-device.js';
import { FakeSealer } from '../fakes/fake-sealer.js';
import { FakeServiceManager } from '../fakes/fake-service-manager.js';
import { FakeTaskRunner } from '../fakes/fake-task-runner.js';
import { FakeUnits } from '../fakes/fake-units.js';
import { FakeWebClient } from '../fakes/fake-web-client.js';
import { upgradeEffect } from './upgrade-rig.js';

export const INSTALLER = 'https://installer.test';
export const CONDUCTOR = 'https://conductor.test';

const ENV = { PATH: '/usr/bin:/bin' };

let ownTags = 0;

const NEVER = new AbortController().signal;

export function base64(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64');
}

export function sha256(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

export function serverFacts(
  facts: Partial<ServerFacts> = {},
  capabilities: readonly Capability[] = ['redeliver', 'result-ack'],
): ServerFacts {
  return {
    ...{ fleet: 'fleet-a', server: 's1', epoch: 1n as Epoch, spreadMs: 1_000, window: 32 },
    capabilities: new Set(capabilities),
    ...facts,
  };
}

/** One stream as a control plane sees it. */
export class FakeSession implements LinkSession {
  readonly sent: LinkMessage[] = [];
  readonly #over = new AbortController();
  /** Is told of each message that the transport takes. */
  onSend: (message: LinkMessage) => void = () => {};

  readonly server: ServerFacts | undefined;
  readonly localAddress = '10.0.0.9';

  /** `older`: a server that says nothing of itself. */
  constructor(server: ServerFacts | 'older' = serverFacts()) {
    this.server = server === 'older' ? undefined : server;
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  async send(message: LinkMessage): Promise<boolean> {
    if (this.#over.signal.aborted) return false;
    this.sent.push(message);
    this.onSend(message);
    return true;
  }

  sendBehind(message: LinkMessage): Promise<boolean> {
    return this.send(message);
  }

  end(): void {
    this.#over.abort();
  }

  /** `tag type content`, one a line. */
  dump(): string {
    return this.sent.map((message) => `${message.tag} ${message.type} ${contentOf(message)}`).join('\n');
  }

  of(tag: string): readonly LinkMessage[] {
    return this.sent.filter((message) => message.tag === tag);
  }
}

export function contentOf({ type, jsonB64 }: LinkMessage): string {
  return type === 'ERROR' ? jsonB64 : Buffer.from(jsonB64, 'base64').toString();
}

/** What outlives a process. */
export class InstructionWorld {
  readonly clock = new FakeClock();
  /** Milliseconds that the machine has slept: they count on the boot-time clock alone. */
  sleptMs = 0;
  /** Boot id of the kernel. */
  boot = 'boot-1';
  readonly disk = new FakeJournalDisk();
  readonly web = new FakeWebClient();
  readonly audit = new FakeAuditLog();
  readonly services = new FakeServiceManager();
  readonly logger = new FakeLogger();
  readonly commands = new FakeCommandRunner();
  readonly join = new FakeJoinSecrets(this.clock);
  readonly sealer = new FakeSealer();
  readonly overlay = new FakeOverlayDevice();
  readonly dnsmasq = new FakeDnsmasqConfig();
  readonly etcd = new FakeEtcdMembers();
  readonly units = new FakeUnits(this.clock);
  readonly files = new FakeMachineFiles();
  /** `severity message`, in order. */
  readonly upgradeSaid: string[] = [];
  readonly upgradeLog = { say: (message: string, severity: string) => void this.upgradeSaid.push(`${severity} ${message}`) };
  readonly orders = new RemovalOrders(this.files, '/data.removal' as AbsolutePath);
  /** When the program that removes the node was started. */
  readonly launched: number[] = [];
  /** Undefined: this node has no virtual IP. */
  vip: VipKeeper | undefined;
  readonly tasks: FakeTaskRunner;
  /** Each script that ran, by its text. */
  readonly ran: string[] = [];

  constructor() {
    this.tasks = new FakeTaskRunner({}, this.clock);
    this.tasks.install('/bin/bash', async ({ files }, { signal }) => {
      const text = new TextDecoder().decode(files.script);
      this.ran.push(text);
      const seconds = /^sleep (\d+)/.exec(text)?.[1];
      if (seconds !== undefined) await this.clock.sleep(Number(seconds) * 1_000, { signal }).catch(() => {});
      return { stdout: `out of ${text}` };
    });
  }

  /** From now on the installer has this script, for instructions without parameters. */
  script(name: string, text: string): void {
    this.web.serve(`${INSTALLER}/scripts?t=${encodeURIComponent(name)}&i=${encodeURIComponent(base64({}))}`, text);
  }

  bootTime(): number {
    return this.clock.monotonic() + this.sleptMs;
  }

  /** What each capability does on this machine. */
  effects(): CapabilityEffects {
    const { commands, tasks, web, clock, logger } = this;
    const programs = new ClusterPrograms({ commands, tasks, kubeconfig: '/etc/kubernetes/admin.conf', env: ENV });
    return {
      dnsmasq: new DnsmasqEffect({ config: this.dnsmasq, units: this.units, clock, sha256, boot: 'boot-1' }),
      etcd: new EtcdRemovalEffect(new EtcdMembershipService({ members: this.etcd, clock })),
      helm: new HelmEffect({ programs, web, clock }),
      join: new JoinEffect({ programs, secrets: this.join }),
      kubernetes: new KubernetesEffect(programs),
      removal: new RemovalEffect({
        orders: this.orders,
        clock,
        launch: async () => void this.launched.push(clock.now()),
      }),
      overlay: new OverlayEffect(new OverlayKeeper({ device: this.overlay, clock, logger }), () => '10.0.0.9'),
      upgrade: upgradeEffect(this),
      vip: new VipEffect(this.vip, () => this.bootTime()),
    };
  }

  /** Another process on the same disks. */
  async start(parts: Partial<InstructionEngineParts> = {}): Promise<Process> {
    const journal = new FakeJournal(this.disk);
    const { sealer, logger: log } = this;
    const sealed = new SealedJournal({ journal, sealer, logger: log });
    await this.audit.open({ signal: NEVER });
    const { clock, web, audit, services, logger, tasks } = this;
    const engine = new InstructionEngine({
      ...{ journal: sealed, audit, tasks, web, services, clock, logger, sha256 },
      policy: () => USUAL_POLICY,
      onAuditFailure: 'refuse',
      nodeIsReady: () => true,
      boot: this.boot,
      bootTime: () => this.bootTime(),
      rootFingerprint: () => 'root-1',
      sources: () => ({ installer: INSTALLER, conductor: CONDUCTOR }),
      scriptEnv: ENV,
      effects: this.effects(),
      reading: { yaml: parseYamlDocuments },
      newTag: () => `own-${++ownTags}`,
      upload: async () => {},
      ...parts,
    });
    await engine.start();
    return new Process(this, engine, journal);
  }
}

/** One life of the agent. */
export class Process {
  readonly world: InstructionWorld;
  readonly engine: InstructionEngine;
  readonly journal: FakeJournal;
  #session: FakeSession | undefined;

  constructor(world: InstructionWorld, engine: InstructionEngine, journal: FakeJournal) {
    this.world = world;
    this.engine = engine;
    this.journal = journal;
  }

  connect(session = new FakeSession()): FakeSession {
    this.#session = session;
    this.engine.opened(session);
    return session;
  }

  drop(): void {
    const session = this.#session;
    this.#session = undefined;
    session?.end();
    if (session !== undefined) this.engine.closed(session);
  }

  /** The message arrives on the current stream. */
  deliver(type: string, tag: string, payload: unknown = {}, facts: Partial<ServerMessage> = {}): void {
    if (this.#session === undefined) throw new Error('there is no session');
    this.engine.received(this.#session, {
      type,
      tag,
      jsonB64: typeof payload === 'string' ? payload : base64(payload),
      ...facts,
    });
  }

  /** All that can happen without time has happened. */
  async settle(ms = 0): Promise<void> {
    for (let round = 0; round < 20; round++) await this.world.clock.advance(0);
    if (ms === 0) return;
    await this.world.clock.advance(ms);
    await this.settle();
  }
}

/** A control plane that confirms each result on its stream. */
export function acknowledging(process: Process, session = new FakeSession()): FakeSession {
  session.onSend = ({ tag }) => {
    queueMicrotask(() => process.engine.received(session, { type: 'RESULT_ACK', tag, jsonB64: 'e30=' }));
  };
  return session;
}
