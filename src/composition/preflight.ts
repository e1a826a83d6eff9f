import { resolve } from 'node:path';
import { LinuxHostFacts } from '../adapters/certificate/linux-host-facts.js';
import { type CliContext, type ExitCode, exitCodes, UsageError } from '../adapters/cli/context.js';
import type { PreflightOptions } from '../adapters/cli/local-verbs.js';
import { structured } from '../adapters/cli/output.js';
import { describePreflight } from '../adapters/cli/preflight.js';
import { SystemClock } from '../adapters/clock/system-clock.js';
import { ExecaCommandRunner } from '../adapters/command/execa-command-runner.js';
import { LinuxPreflightProbe } from '../adapters/preflight/linux-preflight-probe.js';
import { hostPort, ipv4Range, type PortNumber } from '../domain/kernel/network.js';
import { absolutePath } from '../domain/kernel/paths.js';
import { isFit, judgeMachine, refuseSkip } from '../domain/preflight/judge.js';
import type { Wanted } from '../domain/preflight/model.js';

const REGISTRATION_PORT = 9191 as PortNumber;
/** RFC 862 */
const ECHO_PORT = 7 as PortNumber;

/** Checks this machine; needs no daemon and no data directory. */
export async function preflight({ console, env, signal }: CliContext, options: PreflightOptions): Promise<ExitCode> {
  const refused = refuseSkip(options.skip);
  if (refused !== undefined) throw new UsageError(refused);
  const wanted = wantedOf(options);
  const root = absolutePath(resolve(options.root ?? '/'));
  if (root === undefined) throw new UsageError('--root is no path');
  const commands = root === '/' ? new ExecaCommandRunner() : undefined;
  const probe = new LinuxPreflightProbe({ root, host: new LinuxHostFacts(root), commands, clock: new SystemClock(), env });
  const results = judgeMachine(await probe.look(wanted, { signal }), wanted, new Set(options.skip));
  const fit = isFit(results);
  if (options.output === 'table') console.out(describePreflight(console, results));
  else console.out(structured(options.output, { fit, role: wanted.role, checks: results }));
  return fit ? exitCodes.done : exitCodes.failed;
}

function wantedOf(options: PreflightOptions): Wanted {
  const { role, server, ca, caSha256, range, target, knownAnswer, repositories } = options;
  const at = server === undefined ? undefined : hostPort(server, REGISTRATION_PORT);
  if (server !== undefined && at === undefined) throw new UsageError(`--server ${server} is neither host nor host:port`);
  const ranges = range.map((text) => {
    const found = ipv4Range(text);
    if (found === undefined) throw new UsageError(`--range ${text} is no IPv4 network, as 10.96.0.0/12 is`);
    return found;
  });
  if (ca === undefined && caSha256 !== undefined) throw new UsageError('--ca-sha256 needs --ca');
  const udpEcho = options.udpEcho === undefined ? undefined : hostPort(options.udpEcho, ECHO_PORT);
  if (options.udpEcho !== undefined && udpEcho === undefined)
    throw new UsageError(`--udp-echo ${options.udpEcho} is neither host nor host:port`);
  return {
    role,
    server: at,
    ca: ca === undefined ? undefined : { path: resolve(ca), sha256: caSha256 },
    ranges,
    targets: target.map((text) => webUrl('--target', text)),
    knownAnswer: knownAnswer === undefined ? undefined : webUrl('--known-answer', knownAnswer),
    udpEcho,
    asksRepositories: repositories,
  };
}

function webUrl(option: string, text: string): string {
  const url = URL.parse(text);
  const isWeb = url !== null && ['http:', 'https:'].includes(url.protocol) && url.username === '' && url.password === '';
  if (!isWeb)
    throw new UsageError(`${option} ${JSON.stringify(text)} is no URL of http or https, as https://registry.example is`);
  return url.href;
}
