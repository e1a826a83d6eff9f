import { hash } from 'node:crypto';
import { resolve } from 'node:path';
import { type CliContext, type ExitCode, exitCodes } from '../adapters/cli/context.js';
import type { InstallOptions } from '../adapters/cli/local-verbs.js';
import { structured } from '../adapters/cli/output.js';
import { SystemClock } from '../adapters/clock/system-clock.js';
import { type Addon, loadAddon } from '../adapters/dataplane/addon.js';
import { ensureFolder } from '../adapters/files/durable-file.js';
import { DurableMachineFiles } from '../adapters/files/durable-machine-files.js';
import { errnoOf } from '../adapters/files/errno.js';
import { NativeTaskRunner } from '../adapters/instruction/native-task-runner.js';
import { runnerPath, systemdRunPath } from '../adapters/instruction/runner-process.js';
import { GrpcNodewardCalls } from '../adapters/link/grpc-nodeward-calls.js';
import { LinkConnections } from '../adapters/link/link-connections.js';
import { openLogger } from '../adapters/logger/pino-logger.js';
import { Installer } from '../app/install/installer.js';
import { StepTasks } from '../app/kubernetes/step-tasks.js';
import { AgentError } from '../domain/kernel/errors.js';
import { type AbsolutePath, absolutePath } from '../domain/kernel/paths.js';
import { ConfigLoader } from './config-loader.js';
import { configSource } from './daemon.js';
import { checkDataDir } from './data-dir.js';
import { enrolledNode } from './enrolled-node.js';
import { TASK_ENV } from './modules/kubernetes.js';
import { pairReader } from './modules/link.js';
import { pathsOf } from './paths.js';

/** Makes a registered machine what its control plane wants it to be. The agent may run beside it. */
export async function install(context: CliContext, options: InstallOptions): Promise<ExitCode> {
  const { console, env, signal } = context;
  const paths = pathsOf(options, env, '/var/lib/holdfast');
  await checkDataDir(paths);
  const source = configSource('production', paths, options.config, env);
  const { config } = await new ConfigLoader({ mode: 'production', source, env, flags: {} }).load({ signal });
  const root = absolutePath(resolve(options.root ?? '/')) ?? paths.dataDir;
  const node = await enrolledNode({ paths, config }, root, { signal });
  await ensureFolder(paths.install);
  holdInstall(loadAddon(), `${paths.install}/lock` as AbsolutePath);
  const clock = new SystemClock();
  const connections = new LinkConnections({ readPair: pairReader(node), clock });
  const [server] = node.servers;
  const sha256 = (text: string) => hash('sha256', text, 'hex');
  const runner = { runnerPath: runnerPath(env.HOLDFAST_RUNNER), systemdRun: systemdRunPath() };
  const tasks = new NativeTaskRunner({ folder: `${paths.install}/run`, ...runner });
  const installer = new Installer({
    calls: new GrpcNodewardCalls({ connections, address: () => server ?? { host: '', port: 0 } }),
    tasks: new StepTasks({ tasks, clock, sha256, env: TASK_ENV }),
    files: new DurableMachineFiles(),
    place: `${paths.install}/place.json` as AbsolutePath,
    clock,
    logger: openLogger({ fd: 2, level: config.logLevel, colour: env.NO_COLOR === undefined }),
    sha256,
    tell: (line) => console.err(`${line}\n`),
  });
  try {
    const { commands, resumedAt } = await installer.run({ signal });
    // What they wrote may hold secrets, and is of no more use.
    for (const id of await tasks.list({ signal })) await tasks.forget(id, { signal });
    if (options.output !== 'table') console.out(structured(options.output, { installed: true, commands, resumedAt }));
    else console.out(`all ${commands} commands are done\n`);
    return exitCodes.done;
  } finally {
    connections.close();
  }
}

/** Until this process ends, however it ends. @throws AgentError `install.running` */
function holdInstall(addon: Addon, lock: AbsolutePath): void {
  try {
    addon.lockFile(lock);
  } catch (cause) {
    if (errnoOf(cause) !== 'EWOULDBLOCK') throw cause;
    throw new AgentError('install.running', { problem: 'another install runs on this machine' }, { cause });
  }
}
