import { createHash } from 'node:crypto';
import { InstructionEngine, type InstructionEngineParts } from '../../src/app/instruction/instruction-engine.js';
import type { LinkSession } from '../../src/app/link/link-session.js';
import { USUAL_POLICY } from '../../src/domain/instruction/policy.js';
import type { Capability, Epoch, LinkMessage, ServerFacts, ServerMessage } from '../../src/domain/link/model.js';
import { FakeAuditLog } from '../fakes/fake-audit-log.js';
import { FakeClock } from '../fakes/fake-clock.js';
import { FakeJournal, FakeJournalDisk } from '../fakes/fake-journal.js';
import { FakeLogger } from '../fakes/fake-logger.js';
import { FakeServiceManager } from '../fakes/fake-service-manager.js';
import { FakeTaskRunner } from '../fakes/fake-task-runner.js';
import { FakeWebClient } from '../fakes/fake-web-client.js';

export const INSTALLER = 'https://installer.test';
export const CONDUCTOR = 'https://conductor.test';

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
  readonly disk = new FakeJournalDisk();
  readonly web = new FakeWebClient();
  readonly audit = new FakeAuditLog();
  readonly services = new FakeServiceManager();
  readonly logger = new FakeLogger();
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

  /** Another process on the same disks. */
  async start(parts: Partial<InstructionEngineParts> = {}): Promise<Process> {
    const journal = new FakeJournal(this.disk);
    await this.audit.open({ signal: NEVER });
    const { clock, web, audit, services, logger, tasks } = this;
    const engine = new InstructionEngine({
      ...{ journal, audit, tasks, web, services, clock, logger, sha256 },
      policy: () => USUAL_POLICY,
      onAuditFailure: 'refuse',
      nodeIsReady: () => true,
      boot: 'boot-1',
      rootFingerprint: () => 'root-1',
      sources: () => ({ installer: INSTALLER, conductor: CONDUCTOR }),
      scriptEnv: { PATH: '/usr/bin:/bin' },
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
