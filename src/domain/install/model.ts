/** One line of an install list, which the control plane writes and a shell runs. */
export interface InstallCommand {
  readonly id: number;
  readonly command: string;
  /** Id of an earlier command, whose result decides whether this one runs; 0: it always does. */
  readonly after: number;
  /** Regular expressions over that result; empty: no condition. */
  readonly matches: string;
  readonly doesNotMatch: string;
  /** Its failure is told, and the list goes on. */
  readonly ignoreFailure: boolean;
}

/** What a command is: some are not run at all but told. */
export type Directive =
  | { readonly do: 'status'; readonly text: string }
  | { readonly do: 'progress'; readonly percent: number }
  | { readonly do: 'run' };

const STATUS = /^\s*echo\s+(["']?)STATUS_UPDATE:([^"'`$;&|<>\n]*)\1\s*$/;
const PROGRESS = /^\s*echo\s+(["']?)PROGRESS_UPDATE:\s*(\d{1,3})%\1\s*$/;
const WARNING = /^NODELOG_WARN:\s*(.*)$/;

export function directiveOf(command: string): Directive {
  const status = STATUS.exec(command)?.[2];
  if (status !== undefined) return { do: 'status', text: status.trim() };
  const percent = PROGRESS.exec(command)?.[2];
  return percent === undefined ? { do: 'run' } : { do: 'progress', percent: Math.min(100, Number(percent)) };
}

const MOST_COMMANDS = 2_000;
const MAX_COMMAND = 256 * 1024;

/** Why a list is not begun; undefined when it may be. */
export function listProblem(commands: readonly InstallCommand[]): string | undefined {
  if (commands.length === 0) return 'it is empty';
  if (commands.length > MOST_COMMANDS) return `it has ${commands.length} commands, ${MOST_COMMANDS} are taken`;
  const before = new Set<number>();
  for (const { id, command, after, matches, doesNotMatch } of commands) {
    if (before.has(id)) return `command ${id} is there twice`;
    if (command.trim() === '' || command.length > MAX_COMMAND || command.includes('\0')) return `command ${id} is no command`;
    if (after !== 0 && !before.has(after)) return `command ${id} comes after ${after}, which is not before it`;
    if (!isExpression(matches) || !isExpression(doesNotMatch)) return `the condition of command ${id} is no regular expression`;
    before.add(id);
  }
  return undefined;
}

function isExpression(text: string): boolean {
  try {
    return new RegExp(text, 'm') !== undefined;
  } catch {
    return false;
  }
}

/** @param results by command; one that did not run has none, and what depends on it does not run either */
export function mayRun({ after, matches, doesNotMatch }: InstallCommand, results: Readonly<Record<string, string>>): boolean {
  if (after === 0) return true;
  const result = results[after];
  if (result === undefined) return false;
  if (matches !== '' && !new RegExp(matches, 'm').test(result)) return false;
  return doesNotMatch === '' || !new RegExp(doesNotMatch, 'm').test(result);
}

/** What later conditions look at. */
const MAX_RESULT = 4_096;

export function resultOf(stdout: string): string {
  return stdout.trim().slice(0, MAX_RESULT);
}

/** What a command's output says for the node's log. */
export function warningsIn(output: string): readonly string[] {
  return output.split('\n').flatMap((line) => {
    const text = WARNING.exec(line)?.[1]?.trim();
    return text === undefined || text === '' ? [] : [text.slice(0, MAX_RESULT)];
  });
}

/** Where an install stands: of the list with that digest so many commands are behind it. */
export interface InstallPlace {
  readonly digest: string;
  readonly finished: number;
  /** How often the command after them has failed, and was told to have. */
  readonly failed: number;
  readonly results: Readonly<Record<string, string>>;
}

export function formatPlace(place: InstallPlace): string {
  return `${JSON.stringify(place)}\n`;
}

/** Undefined for what no `formatPlace` wrote. */
export function parsePlace(text: string): InstallPlace | undefined {
  const value = parsed(text);
  if (typeof value !== 'object' || value === null) return undefined;
  if (!('digest' in value && 'finished' in value && 'failed' in value && 'results' in value)) return undefined;
  const { digest, finished, failed, results } = value;
  if (typeof digest !== 'string' || !isCount(finished) || !isCount(failed)) return undefined;
  if (typeof results !== 'object' || results === null) return undefined;
  const texts = Object.entries(results).flatMap(([id, result]) => (typeof result === 'string' ? [[id, result] as const] : []));
  return { digest, finished, failed, results: Object.fromEntries(texts) };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What a refused call asks for, by the beginning of its text. */
export function refusalOf(details: string): 'wait' | 'released' | undefined {
  if (details.startsWith('WAIT_FOR_CONTROL_PLANE: ')) return 'wait';
  return details.startsWith('FIRST_NODE_CLAIM_RELEASED: ') ? 'released' : undefined;
}

/** With it a node begins a cluster of its own: only after the control plane has confirmed that it is the one that may. */
export const FIRST_NODE_STATUS = 'INITIALIZING_NEW_CLUSTER';
export const FAILED_STATUS = 'INSTALL_ERROR';
