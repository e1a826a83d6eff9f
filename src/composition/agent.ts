import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Container } from 'inversify';
import { type CliContext, type ExitCode, exitCodes } from '../adapters/cli/context.js';
import type { DaemonOptions } from '../adapters/cli/local-verbs.js';
import { SystemClock } from '../adapters/clock/system-clock.js';
import { findOlderAgent } from '../adapters/node/older-agent.js';
import type { Config, Setting } from '../domain/config/model.js';
import { AgentError } from '../domain/kernel/errors.js';
import { type AbsolutePath, absolutePath, type Paths } from '../domain/kernel/paths.js';
import { holdAdopted } from './adopt.js';
import { buildAgentContainer } from './agent-container.js';
import { aborted, prepareDaemon, runDaemon, untilStopped } from './daemon.js';
import { enrolledNode } from './enrolled-node.js';
import { launchRemoval, removalOrders } from './modules/uninstall.js';
import { pathsOf } from './paths.js';
import { NodePorts, NodeSubsystems, Root, Servers, Subsystems } from './tokens.js';
import { version } from './version.js';

const DATA_DIR = '/var/lib/holdfast';

/** The agent of a registered machine, until a signal. */
export async function agent(context: CliContext, options: DaemonOptions): Promise<ExitCode> {
  await untilStopped(context, async () => {
    if (await resumeWithoutNode(context, options)) return;
    const prepared = await prepareDaemon(context, options, { mode: 'production', dataDir: DATA_DIR });
    const root = absolutePath(resolve(options.root ?? '/')) ?? prepared.facts.paths.dataDir;
    await refuseBesideAnother(root);
    await holdAdopted(prepared.facts, root, context);
    const node = await enrolledNode(prepared.facts, root, context);
    const container = buildAgentContainer(prepared.facts, prepared.logger, node);
    await runDaemon(container, context, prepared, {
      use: (config, changed) => useLive(container, config, changed),
      serve: async () => {
        if (!context.signal.aborted) announce(container, context);
        await resumeRemoval(prepared.facts.paths, root, context);
        await aborted(context.signal);
      },
    });
  });
  return exitCodes.done;
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
