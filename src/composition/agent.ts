import { closeSync, existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Container } from 'inversify';
import { Predecessor } from '../adapters/agent/predecessor.js';
import { SuccessorProcess } from '../adapters/agent/successor-process.js';
import { type CliContext, type ExitCode, exitCodes } from '../adapters/cli/context.js';
import type { DaemonOptions } from '../adapters/cli/local-verbs.js';
import { SystemClock } from '../adapters/clock/system-clock.js';
import { findOlderAgent } from '../adapters/node/older-agent.js';
import { Handover } from '../app/agent/handover.js';
import type { Config, Setting } from '../domain/config/model.js';
import { AgentError } from '../domain/kernel/errors.js';
import { type AbsolutePath, absolutePath, type Paths } from '../domain/kernel/paths.js';
import type { Successor } from '../ports/agent/successor.js';
import { holdAdopted } from './adopt.js';
import { buildAgentContainer } from './agent-container.js';
import { aborted, type PreparedDaemon, prepareDaemon, runDaemon, untilStopped } from './daemon.js';
import { enrolledNode } from './enrolled-node.js';
import { launchRemoval, removalOrders } from './modules/uninstall.js';
import { pathsOf } from './paths.js';
import { NodePorts, NodeSubsystems, Ports, Root, Servers, Subsystems } from './tokens.js';
import { version } from './version.js';

const DATA_DIR = '/var/lib/holdfast';

/** The agent of a registered machine, until a signal, or until another process has its place. */
export async function agent(context: CliContext, options: DaemonOptions): Promise<ExitCode> {
  await untilStopped(context, async () => {
    if (await resumeWithoutNode(context, options)) return;
    const predecessor = Predecessor.of(context.env);
    const prepared = await prepareDaemon(context, options, { mode: 'production', dataDir: DATA_DIR, predecessor });
    const root = absolutePath(resolve(options.root ?? '/')) ?? prepared.facts.paths.dataDir;
    const locks = predecessor === undefined ? await holdAlone(prepared, root, context) : prepared.locks;
    const node = await enrolledNode(prepared.facts, root, context);
    const handover = handoverOf(prepared, context);
    let successor: Successor | undefined;
    let facts = prepared.facts;
    do {
      const container = buildAgentContainer(facts, prepared.logger, node);
      successor = await runDaemon(container, context, prepared, {
        use: (config, changed) => useLive(container, config, changed),
        serve: async () => {
          predecessor?.serves();
          if (!context.signal.aborted) announce(container, context);
          await resumeRemoval(facts.paths, root, context);
          return untilSucceeded(handover, container, context);
        },
      });
      const dataPlane = container.get(Ports.dataPlane);
      if (successor !== undefined && (await handover.complete(successor, { locks, sockets: dataPlane.sockets() }))) {
        // The next process holds them alone from here on: one that dies is started again while this one still has connections.
        for (const lock of locks) closeSync(lock);
        return handover.carryOn(dataPlane, container.get(NodePorts.settings).current.handoverGraceMs, context.signal);
      }
      facts = { ...facts, inherited: [], carried: dataPlane };
    } while (successor !== undefined && !context.signal.aborted);
  });
  return exitCodes.done;
}

/** What keeps others from this machine; the next process is given it. */
async function holdAlone({ facts, locks }: PreparedDaemon, root: AbsolutePath, context: CliContext): Promise<readonly number[]> {
  await refuseBesideAnother(root);
  const lock = await holdAdopted(facts, root, context);
  return lock === undefined ? locks : [...locks, lock];
}

function handoverOf({ facts: { addon }, logger }: PreparedDaemon, { env }: CliContext): Handover {
  const program = env.HOLDFAST_LAUNCHER ?? join(import.meta.dirname, '../../bin/holdfast');
  const launch = () => SuccessorProcess.start(addon, { program, args: process.argv.slice(2), env });
  return new Handover({ launch, clock: new SystemClock(), logger: logger.child({ subsystem: 'handover' }) });
}

/** Ends with the process to hand over to, which SIGUSR2 asks for, or with none at the signal's end. */
async function untilSucceeded(handover: Handover, container: Container, { signal }: CliContext): Promise<Successor | undefined> {
  const asked = Promise.withResolvers<Successor>();
  const begin = () => void handover.begin().then((successor) => successor !== undefined && asked.resolve(successor));
  process.on('SIGUSR2', begin);
  try {
    const successor = await Promise.race([asked.promise, aborted(signal)]);
    if (successor === undefined) return undefined;
    container.get(Subsystems.l4).keepTraffic();
    return successor;
  } finally {
    process.off('SIGUSR2', begin);
  }
}

/** Of a link that has come up: the answer to the instruction may be owed still. */
const ANSWER_MS = 5_000;

/** A removal that a death has cut off goes on, however much of it was done (engine.md A16b). */
async function resumeRemoval(paths: Paths, root: AbsolutePath, { signal }: CliContext): Promise<void> {
  if ((await removalOrders(paths).read({ signal }))?.stage !== 'removing') return;
  const clock = new SystemClock();
  await clock.sleep(ANSWER_MS, { signal });
  await launchRemoval(paths, root, clock, { signal });
}

/** Whether there is no node to start any more, but one to go on removing. */
async function resumeWithoutNode({ env, signal }: CliContext, options: DaemonOptions): Promise<boolean> {
  const paths = pathsOf(options, env, DATA_DIR);
  if (existsSync(paths.certs) || (await removalOrders(paths).read({ signal }))?.stage !== 'removing') return false;
  await launchRemoval(paths, absolutePath(resolve(options.root ?? '/')) ?? paths.dataDir, new SystemClock(), { signal });
  return true;
}

/** @throws AgentError `agent.other_agent` */
async function refuseBesideAnother(root: AbsolutePath): Promise<void> {
  const other = await findOlderAgent(root);
  if (other !== undefined) throw new AgentError('agent.other_agent', { problem: `${other.what}: \`${other.stop}\`` });
}

function useLive(container: Container, config: Config, changed: readonly Setting[]): void {
  if (changed.includes('connectTimeoutMs')) container.get(Subsystems.l4).setConnectTimeout(config.connectTimeoutMs);
  if (changed.includes('staleAfterMs')) container.get(NodeSubsystems.logConsumer).setStaleAfter(config.staleAfterMs);
  // Instructions ask it.
  container.get(NodePorts.settings).current = config;
}

function announce(container: Container, { console }: CliContext): void {
  const { paths } = container.get(Root.facts);
  const { identity, servers } = container.get(Root.node);
  const metrics = container.get(Servers.metrics).address;
  const notReady = container.get(Root.agent).readyError();
  const lines = [
    notReady === undefined
      ? `holdfast ${version} is ready (agent)`
      : `holdfast ${version} runs and is not ready yet (agent): ${notReady.message}; see \`holdfast status\``,
    `  node     ${identity.nid} of ${identity.aid}`,
    `  control  ${servers.map(({ host, port }) => `${host}:${port}`).join(', ')}`,
    `  data     ${paths.dataDir}`,
    `  admin    ${paths.adminSocket}`,
    `  metrics  ${metrics === '' ? 'off' : `http://${metrics}/metrics`}`,
  ];
  console.err(`${lines.join('\n')}\n`);
}
