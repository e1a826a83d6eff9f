import { resolve } from 'node:path';
import type { Container } from 'inversify';
import { type CliContext, type ExitCode, exitCodes } from '../adapters/cli/context.js';
import type { DaemonOptions } from '../adapters/cli/local-verbs.js';
import { findOlderAgent } from '../adapters/node/older-agent.js';
import type { Config, Setting } from '../domain/config/model.js';
import { AgentError } from '../domain/kernel/errors.js';
import { type AbsolutePath, absolutePath } from '../domain/kernel/paths.js';
import { holdAdopted } from './adopt.js';
import { buildAgentContainer } from './agent-container.js';
import { aborted, prepareDaemon, runDaemon, untilStopped } from './daemon.js';
import { enrolledNode } from './enrolled-node.js';
import { NodePorts, NodeSubsystems, Root, Servers, Subsystems } from './tokens.js';
import { version } from './version.js';

/** The agent of a registered machine, until a signal. */
export async function agent(context: CliContext, options: DaemonOptions): Promise<ExitCode> {
  await untilStopped(context, async () => {
    const prepared = await prepareDaemon(context, options, { mode: 'production', dataDir: '/var/lib/holdfast' });
    const root = absolutePath(resolve(options.root ?? '/')) ?? prepared.facts.paths.dataDir;
    await refuseBesideAnother(root);
    await holdAdopted(prepared.facts, root, context);
    const node = await enrolledNode(prepared.facts, root, context);
    const container = buildAgentContainer(prepared.facts, prepared.logger, node);
    await runDaemon(container, context, prepared, {
      use: (config, changed) => useLive(container, config, changed),
      serve: async () => {
        if (!context.signal.aborted) announce(container, context);
        await aborted(context.signal);
      },
    });
  });
  return exitCodes.done;
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
