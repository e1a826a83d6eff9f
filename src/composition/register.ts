import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { FilePairStore } from '../adapters/certificate/file-pair-store.js';
import { GrpcRegistrationClient } from '../adapters/certificate/grpc-registration-client.js';
import { LinuxHostFacts } from '../adapters/certificate/linux-host-facts.js';
import { X509KeyMaker } from '../adapters/certificate/x509-key-maker.js';
import { type CliContext, type ExitCode, exitCodes } from '../adapters/cli/context.js';
import type { RegisterOptions } from '../adapters/cli/local-verbs.js';
import { structured } from '../adapters/cli/output.js';
import { SystemClock } from '../adapters/clock/system-clock.js';
import { loadAddon } from '../adapters/dataplane/addon.js';
import { replaceFile } from '../adapters/files/durable-file.js';
import { registerNode } from '../app/certificate/register-node.js';
import { encodeEnrolment } from '../domain/certificate/enrolment.js';
import { AgentError } from '../domain/kernel/errors.js';
import { formatInstant } from '../domain/kernel/instant.js';
import { type HostPort, hostPort, type PortNumber } from '../domain/kernel/network.js';
import { absolutePath } from '../domain/kernel/paths.js';
import { type Aid, aid, nid as asNid } from '../domain/link/model.js';
import { checkDataDir, holdDataDir, makeDataDir } from './data-dir.js';
import { flatPair, pathsOf } from './paths.js';

const REGISTRATION_PORT = 9191 as PortNumber;
const NODES_PORT = 9192 as PortNumber;

/** Makes this machine a node. The agent must not run meanwhile: it uses the certificates. */
export async function register(context: CliContext, options: RegisterOptions): Promise<ExitCode> {
  const { console, env, signal } = context;
  const paths = pathsOf(options, env, '/var/lib/holdfast');
  const server = serverOf(options.server);
  const account = accountOf(options.account);
  await checkDataDir(paths);
  const token = await tokenOf(context, options);
  await makeDataDir(paths);
  holdDataDir(loadAddon(), paths);
  // It holds the process: between two tries nothing else does.
  const clock = new SystemClock();
  const root = absolutePath(resolve(options.root ?? '/')) ?? paths.dataDir;
  const { nid, pair } = await registerNode(
    {
      connect: () =>
        new GrpcRegistrationClient({
          ...server,
          root: { path: resolve(options.ca), sha256: options.caSha256 },
          now: () => clock.now(),
        }),
      host: new LinuxHostFacts(root),
      keys: new X509KeyMaker(),
      pairs: new FilePairStore({ folder: paths.certs, flat: flatPair(paths) }),
      clock,
    },
    { server: options.server, account, token },
    { signal },
  );
  const nodes = { host: server.host, port: NODES_PORT };
  await replaceFile(paths.enrolment, encodeEnrolment({ servers: [nodes], nid: asNid(nid), aid: account }), {
    mode: 0o600,
    signal,
  });
  const facts = { nid, server: server.host, certificateUntil: formatInstant(pair.notAfter) };
  const where = [options.root && ` --root ${options.root}`, options.dataDir && ` --data-dir ${options.dataDir}`].join('');
  if (options.output === 'table') console.out(`registered as ${nid}; start the agent with: holdfast agent${where}\n`);
  else console.out(structured(options.output, facts));
  return exitCodes.done;
}

function serverOf(text: string): HostPort {
  const server = hostPort(text.trim(), REGISTRATION_PORT);
  if (server !== undefined) return server;
  throw new AgentError('config.invalid', { problem: `--server: expected host or host:port, found ${JSON.stringify(text)}` });
}

function accountOf(text: string): Aid {
  try {
    return aid(text.trim());
  } catch (cause) {
    const problem = `--account: expected 1 to 63 of letters, digits, ., _ and -, found ${JSON.stringify(text)}`;
    throw new AgentError('config.invalid', { problem }, { cause });
  }
}

/** Never from the command line, which every user of the machine can read. */
async function tokenOf({ env, stdin }: CliContext, { tokenFile }: RegisterOptions): Promise<string | undefined> {
  if (tokenFile === undefined) return env.HOLDFAST_TOKEN;
  if (tokenFile !== '-') {
    const read = readFile(resolve(tokenFile), 'utf8');
    return await read.catch((cause: unknown) => {
      throw new AgentError('config.invalid', { problem: `--token-file: ${tokenFile} cannot be read` }, { cause });
    });
  }
  const parts: Uint8Array[] = [];
  for await (const part of stdin) parts.push(part);
  return Buffer.concat(parts).toString('utf8');
}
