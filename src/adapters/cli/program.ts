import { Command, CommanderError, Help, type Option } from 'commander';
import { AgentError } from '../../domain/kernel/errors.js';
import { printableLines } from '../../domain/kernel/printable.js';
import { type CliContext, type ExitCode, exitCodes, UsageError } from './context.js';
import type { LocalVerbs } from './local-verbs.js';
import { guarded, paint, structured } from './output.js';
import { addAdopt } from './verbs/adoption.js';
import { addCertificateVerbs, addRootVerbs } from './verbs/certificates.js';
import { addDev, addFleetDaemons } from './verbs/daemons.js';
import { addEtcdVerbs } from './verbs/etcd.js';
import { addAudit, addRestore } from './verbs/files.js';
import { addBackup, addConnect, addInstructionVerbs, addNodeVerbs, addTokenVerbs } from './verbs/fleet.js';
import { addInstall } from './verbs/install.js';
import { addKubeproxy } from './verbs/kubeproxy.js';
import { addAgentVerbs, addOperations } from './verbs/node.js';
import { outputOption } from './verbs/options.js';
import { addSync } from './verbs/overlay.js';
import { addPreflight } from './verbs/preflight.js';
import { addDelete, addExplain, addManifestVerbs, addReadingVerbs } from './verbs/resources.js';
import { addRemovalVerbs } from './verbs/uninstall.js';
import { addVipVerbs } from './verbs/vip.js';

/** In the order of `--help`. */
const verbs = [
  addDev,
  addFleetDaemons,
  addAdopt,
  addPreflight,
  addInstall,
  addManifestVerbs,
  addReadingVerbs,
  addExplain,
  addDelete,
  addOperations,
  addRestore,
  addAudit,
  addInstructionVerbs,
  addConnect,
  addNodeVerbs,
  addTokenVerbs,
  addCertificateVerbs,
  addRootVerbs,
  addAgentVerbs,
  addSync,
  addEtcdVerbs,
  addKubeproxy,
  addVipVerbs,
  addBackup,
  addRemovalVerbs,
];

/** Parses and runs one command line. Every failure is told on standard error and becomes an exit code. */
export async function runCli(argv: readonly string[], given: CliContext, version: string, local: LocalVerbs): Promise<ExitCode> {
  const context = { ...given, console: guarded(given.console) };
  let exitCode: ExitCode = exitCodes.done;
  const program = buildProgram(context, version, local, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(argv, { from: 'user' });
    return exitCode;
  } catch (error) {
    return report(context, error);
  }
}

function report({ console, signal }: CliContext, error: unknown): ExitCode {
  // The parser has said it already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  const say = (text: string) => console.err(`${paint(console, 'red', 'error')}: ${text}\n`);
  if (signal.aborted && error === signal.reason) {
    say('interrupted');
    return exitCodes.failed;
  }
  if (error instanceof UsageError) {
    say(`${error.message}\n(holdfast --help shows every verb)`);
    return exitCodes.usage;
  }
  if (!(error instanceof AgentError)) {
    say(error instanceof Error ? error.message : String(error));
    return exitCodes.failed;
  }
  say(`${printableLines(error.message)}\n  what to do: ${printableLines(origin(error).remedy)}`);
  return error.code === 'admin.unreachable' ? exitCodes.unreachable : exitCodes.failed;
}

/** What to mend when a start failed is what made it fail. */
function origin(error: AgentError): AgentError {
  return error.code === 'agent.start_failed' && error.cause instanceof AgentError ? origin(error.cause) : error;
}

function buildProgram(context: CliContext, version: string, local: LocalVerbs, done: (code: ExitCode) => void): Command {
  const { console } = context;
  const program = new Command('holdfast')
    .description('Services with stable addresses, balanced by native threads, driven by an ordered log.')
    .version(version, '-V, --version', 'print the version')
    .showHelpAfterError('(holdfast --help shows every verb)')
    .configureHelp({ optionDescription, minWidthToWrap: 30 })
    .exitOverride()
    .configureOutput({ writeOut: console.out, writeErr: console.err });
  for (const add of verbs) add(program, { context, local, done });
  program
    .command('version')
    .description('print the version')
    .addOption(outputOption())
    .action(({ output }) => console.out(output === 'table' ? `holdfast ${version}\n` : structured(output, { version })));
  return program;
}

/** That something is off or empty unless it is given needs no words. */
function optionDescription(option: Option): string {
  const { defaultValue, description } = option;
  const isNothing = defaultValue === false || (Array.isArray(defaultValue) && defaultValue.length === 0);
  return isNothing ? description : new Help().optionDescription(option);
}
