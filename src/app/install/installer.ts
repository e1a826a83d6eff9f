import { classifyFault } from '../../domain/install/faults.js';
import {
  directiveOf,
  FAILED_STATUS,
  FIRST_NODE_STATUS,
  formatPlace,
  type InstallCommand,
  type InstallPlace,
  listProblem,
  mayRun,
  parsePlace,
  refusalOf,
  resultOf,
  warningsIn,
} from '../../domain/install/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { AbsolutePath } from '../../domain/kernel/paths.js';
import type { ProgramEnd } from '../../domain/kubernetes/model.js';
import type { NodelogEntry } from '../../domain/link/calls.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { MachineFiles } from '../../ports/files/machine-files.js';
import type { TaskId } from '../../ports/instruction/task-runner.js';
import type { NodewardCalls } from '../../ports/link/nodeward-calls.js';
import type { Logger } from '../../ports/logger.js';
import { messageOf } from '../agent/managed-subsystem.js';
import { NETWORK_WAITS_MS, type StepTasks } from '../kubernetes/step-tasks.js';

/** Between two questions whether there is a control plane of Kubernetes, and of all of them. */
const ASK_AGAIN_MS = 15_000;
const ASK_FOR_MS = 30 * 60_000;
/** Of one command; the longest ones pull the images of Kubernetes. */
const COMMAND_MS = 30 * 60_000;
const TYPE = 'INSTALL';

export interface InstallerParts {
  readonly calls: Pick<NodewardCalls, 'installCommands' | 'updateStatus' | 'addNodelog'>;
  readonly tasks: StepTasks;
  readonly files: MachineFiles;
  /** The file that says how far it is. */
  readonly place: AbsolutePath;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Hex. */
  readonly sha256: (text: string) => string;
  /** For whoever watches. */
  readonly tell: (line: string) => void;
}

export interface InstallEnd {
  readonly commands: number;
  /** Commands that an earlier run had done. */
  readonly resumedAt: number;
}

interface Failure {
  readonly code: string;
  readonly message: string;
  readonly cause: string;
  readonly remedy: string;
}

/** Carries out the list of commands that the control plane has for this node. One at a time on a machine. */
export class Installer {
  readonly #parts: InstallerParts;

  constructor(parts: InstallerParts) {
    this.#parts = parts;
  }

  /**
   * The same list goes on where it stopped, and a command whose end is known does not run again; another list begins anew. Whatever ends
   * it is told to the control plane: the status INSTALL_ERROR, and a line of the node's log with code, cause and remedy.
   * @throws AgentError `install.failed`, `link.*`, `certificate.*`, `adoption.file_failed`
   */
  async run(options: CallOptions): Promise<InstallEnd> {
    const { tell } = this.#parts;
    const commands = await this.#list(options);
    const digest = this.#parts.sha256(JSON.stringify(commands));
    const before = await this.#read(options);
    const isOurs = before?.digest === digest;
    if (before !== undefined && !isOurs) tell('the control plane has another list than before: it begins anew');
    const start: InstallPlace = before !== undefined && isOurs ? before : { digest, finished: 0, failed: 0, results: {} };
    if (start.finished > 0) tell(`${start.finished} of ${commands.length} commands are done already`);
    // Whoever was stopped right before it begins a cluster asks once more whether it may.
    const last = commands[start.finished - 1];
    if (last !== undefined && isFirstNode(last)) await this.#status(FIRST_NODE_STATUS, options);
    let place = start;
    for (const [index, command] of commands.entries()) {
      if (index < start.finished) continue;
      const result = mayRun(command, place.results) ? await this.#carryOut(command, place, options) : undefined;
      const isAsked = result !== undefined && commands.some(({ after }) => after === command.id);
      const results = isAsked ? { ...place.results, [command.id]: result } : place.results;
      place = { digest, finished: index + 1, failed: 0, results };
      await this.#write(place, options);
    }
    return { commands: commands.length, resumedAt: start.finished };
  }

  /** Also when it cannot even be fetched, that is told. */
  async #list(options: CallOptions): Promise<readonly InstallCommand[]> {
    const { calls, clock, tell } = this.#parts;
    const end = clock.monotonic() + ASK_FOR_MS;
    for (;;) {
      try {
        const commands = await calls.installCommands(options);
        const problem = listProblem(commands);
        if (problem === undefined) return commands;
        const remedy = 'mend the list at the control plane, then run it again';
        throw await this.#failed({ ...GENERIC, message: 'the list of commands cannot be used', cause: problem, remedy }, options);
      } catch (error) {
        options.signal.throwIfAborted();
        if (!(error instanceof AgentError) || !isPassing(error)) throw await this.#unfetched(error, options);
        if (clock.monotonic() + ASK_AGAIN_MS > end) throw await this.#unfetched(error, options);
        tell(`it is asked for again in ${ASK_AGAIN_MS / 1_000} s: ${messageOf(error)}`);
        await clock.sleep(ASK_AGAIN_MS, options);
      }
    }
  }

  async #unfetched(error: unknown, options: CallOptions): Promise<unknown> {
    if (!(error instanceof AgentError) || error.code === 'install.failed') return error;
    const { remedy } = error;
    const failure = { ...GENERIC, message: 'the list of commands could not be fetched', cause: error.message, remedy };
    await this.#failed(failure, options);
    return error;
  }

  /** Its result. */
  async #carryOut(command: InstallCommand, place: InstallPlace, options: CallOptions): Promise<string> {
    const { tell } = this.#parts;
    const directive = directiveOf(command.command);
    if (directive.do === 'progress') tell(`${directive.percent} %`);
    if (directive.do === 'status') await this.#status(directive.text, options);
    if (directive.do !== 'run') return '';
    const end = await this.#parts.tasks.run(
      {
        // Another name than that of a try whose failure was told: what somebody has mended runs again.
        ...{
          work: this.#parts.sha256(`install ${place.digest}`) as TaskId,
          name: `${place.finished}.${place.failed}`,
          timeoutMs: COMMAND_MS,
        },
        // From a file: what the machine shows of its processes is for everybody.
        ...{ argv: ['bash', '%f/command'], files: { command: new TextEncoder().encode(command.command) } },
        // What may fail costs one try.
        waitsMs: command.ignoreFailure ? [] : NETWORK_WAITS_MS,
        onRetry: (problem, waitMs) => tell(`${problem}; it is tried again in ${waitMs / 1_000} s`),
      },
      options,
    );
    for (const text of warningsIn(`${end.stdout}\n${end.stderr}`))
      await this.#log('warning', { ...NONE, message: text }, options);
    if (end.exitCode !== 0) await this.#commandFailed(command, place, end, options);
    return resultOf(end.stdout);
  }

  async #status(text: string, options: CallOptions): Promise<void> {
    const { calls, tell } = this.#parts;
    tell(text);
    try {
      await calls.updateStatus(text, options);
    } catch (error) {
      options.signal.throwIfAborted();
      // Two nodes that begin at once must not both make a cluster: without a yes there is none.
      if (text === FIRST_NODE_STATUS) throw await this.#failed(notConfirmed(error), options);
      this.#parts.logger.warn('the control plane was not told a status', { status: text, error });
    }
  }

  async #commandFailed(
    { id, ignoreFailure }: InstallCommand,
    place: InstallPlace,
    end: ProgramEnd,
    options: CallOptions,
  ): Promise<void> {
    const { code, cause, remedy } = classifyFault(`${end.stdout}\n${end.stderr}`);
    // What it wrote may hold secrets: it stays on the machine.
    this.#parts.logger.error('a command of the install list failed', { command: id, ...end });
    const message = `command ${id} ${end.timedOut ? 'took too long' : `ended with ${end.exitCode}`}`;
    if (ignoreFailure) return this.#log('warning', { code, message, cause, remedy }, options);
    const failure = await this.#failed({ code, message, cause, remedy }, options);
    await this.#write({ ...place, failed: place.failed + 1 }, options);
    throw failure;
  }

  async #failed(failure: Failure, options: CallOptions): Promise<AgentError> {
    const { calls, logger } = this.#parts;
    await calls
      .updateStatus(FAILED_STATUS, options)
      .catch((error: unknown) => logger.warn('INSTALL_ERROR was not told', { error }));
    await this.#log('failure', failure, options);
    const { code, message, cause, remedy } = failure;
    return new AgentError('install.failed', { problem: `${message}: ${cause} (${code})`, remedy });
  }

  /** It is of no weight for the install whether the control plane hears it. */
  async #log(severity: NodelogEntry['severity'], failure: Failure, options: CallOptions): Promise<void> {
    const { calls, logger, tell } = this.#parts;
    if (severity === 'warning') tell(`warning: ${failure.message}${failure.cause === '' ? '' : `: ${failure.cause}`}`);
    await calls.addNodelog({ type: TYPE, severity, docsUrl: '', ...failure }, options).catch((error: unknown) => {
      options.signal.throwIfAborted();
      logger.warn('a line of the log was not told', { message: failure.message, error });
    });
  }

  async #read(options: CallOptions): Promise<InstallPlace | undefined> {
    const text = await this.#parts.files.read(this.#parts.place, options);
    return text === undefined ? undefined : parsePlace(text);
  }

  #write(place: InstallPlace, options: CallOptions): Promise<void> {
    return this.#parts.files.replace([{ path: this.#parts.place, text: formatPlace(place), mode: 0o600 }], options);
  }
}

const NONE = { code: '', cause: '', remedy: '' };
const GENERIC = { code: 'NA_GENERIC' };

function isFirstNode({ command }: InstallCommand): boolean {
  const directive = directiveOf(command);
  return directive.do === 'status' && directive.text === FIRST_NODE_STATUS;
}

/** Whether the control plane may have a list a little later. */
function isPassing(error: AgentError): boolean {
  if (error.code === 'link.unreachable' || error.code === 'link.timed_out') return true;
  return error.code === 'link.refused' && refusalOf(detailsOf(error)) === 'wait';
}

function detailsOf({ facts }: AgentError): string {
  return String(facts.problem ?? '');
}

function notConfirmed(error: unknown): Failure {
  const isReleased = error instanceof AgentError && refusalOf(detailsOf(error)) === 'released';
  return {
    code: 'FIRST_NODE_CLAIM_NOT_CONFIRMED',
    message: 'this node does not begin a cluster',
    cause: isReleased ? 'another node begins it' : `the control plane has not confirmed that it may: ${messageOf(error)}`,
    remedy: 'run the install again: it then joins the cluster that is there',
  };
}
