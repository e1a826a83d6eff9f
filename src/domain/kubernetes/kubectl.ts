import type { RepeatClass } from '../instruction/model.js';

/** What a command line of kubectl does, as far as it can be told without running it. */
export type KubectlClass =
  | { readonly refused: string }
  /** `verb`: one word, or two as in `rollout status`; empty when there is none. */
  | { readonly verb: string; readonly repeat: Exclude<RepeatClass, 'probe'> };

/** Flags that take their value from the next argument (`kubectl options`). */
const GLOBAL_WITH_VALUE: ReadonlySet<string> = new Set([
  ...['-n', '--namespace', '-s', '--server', '--context', '--cluster', '--user', '--kubeconfig', '--token'],
  ...['--as', '--as-group', '--as-uid', '--certificate-authority', '--client-certificate', '--client-key'],
  ...['--request-timeout', '--tls-server-name', '--cache-dir', '--password', '--username', '-v', '--v', '--vmodule'],
]);
const GLOBAL_ALONE: ReadonlySet<string> = new Set([
  ...['--insecure-skip-tls-verify', '--match-server-version', '--warnings-as-errors', '--disable-compression'],
]);

/** Verbs whose second word decides. */
const FAMILIES: ReadonlySet<string> = new Set([
  'auth',
  'rollout',
  'config',
  'certificate',
  'create',
  'set',
  'apply',
  'top',
  'plugin',
]);

/** Only ask. */
const READING: ReadonlySet<string> = new Set([
  ...['get', 'describe', 'logs', 'version', 'explain', 'api-resources', 'api-versions', 'diff', 'wait', 'events'],
  ...['top node', 'top nodes', 'top pod', 'top pods', 'auth can-i', 'auth whoami', 'rollout status', 'rollout history'],
]);

/** End in the same state however often they run. */
const CONVERGING: ReadonlySet<string> = new Set(['cordon', 'uncordon', 'drain', 'apply']);
const CONVERGING_WITH: Readonly<Record<string, string>> = {
  label: '--overwrite',
  annotate: '--overwrite',
  taint: '--overwrite',
  delete: '--ignore-not-found',
};

/** Last until somebody ends them: sessions, not instructions. */
const ENDLESS: ReadonlySet<string> = new Set(['attach', 'port-forward', 'proxy', 'edit', 'apply edit-last-applied']);
const FOLLOWING: Readonly<Record<string, readonly string[]>> = {
  logs: ['-f', '--follow'],
  get: ['-w', '--watch', '--watch-only'],
  events: ['-w', '--watch'],
};
const INTERACTIVE: Readonly<Record<string, readonly string[]>> = {
  exec: ['-i', '-t', '--stdin', '--tty'],
  run: ['-i', '-t', '--stdin', '--tty'],
  debug: ['-i', '-t', '--stdin', '--tty'],
};

/**
 * engine.md A8, the rows of RUN_KUBECTL_COMMAND: what cannot be told is taken for something that may run only once.
 * @param argv without the program's name
 */
export function classifyKubectl(argv: readonly string[]): KubectlClass {
  const at = verbAt(argv);
  const first = argv[at];
  if (first === undefined) return { verb: '', repeat: 'never' };
  const second = argv[at + 1];
  const isPair = FAMILIES.has(first) && second !== undefined && !second.startsWith('-');
  const verb = isPair ? `${first} ${second}` : first;
  const end = argv.indexOf('--');
  const flags = argv.slice(0, end < 0 ? undefined : end).filter((arg) => arg.startsWith('-'));
  const refused = refusalOf(verb, first, flags);
  if (refused !== undefined) return { refused };
  // Both write a file, whatever the verb.
  if (flags.some((flag) => flag.startsWith('--profile'))) return { verb, repeat: 'never' };
  if (READING.has(verb)) return { verb, repeat: 'read' };
  return { verb, repeat: converges(verb, flags) ? 'repeat' : 'never' };
}

/** Where the verb stands: behind flags that are known. One that is not may have a value, which would be taken for the verb. */
function verbAt(argv: readonly string[]): number {
  for (let at = 0; at < argv.length; at++) {
    const arg = argv[at] ?? '';
    if (!arg.startsWith('-')) return at;
    const name = arg.split('=', 1)[0] ?? '';
    if (GLOBAL_WITH_VALUE.has(name)) at += arg.includes('=') ? 0 : 1;
    else if (!GLOBAL_ALONE.has(name) && !/^-[nsv]./.test(arg)) return argv.length;
  }
  return argv.length;
}

function refusalOf(verb: string, first: string, flags: readonly string[]): string | undefined {
  if (ENDLESS.has(verb) || ENDLESS.has(first)) return `kubectl ${verb} does not end by itself`;
  const follows = FOLLOWING[verb]?.find((flag) => isSet(flags, flag));
  if (follows !== undefined) return `kubectl ${verb} ${follows} does not end by itself`;
  const asks = INTERACTIVE[verb]?.find((flag) => isSet(flags, flag));
  return asks === undefined ? undefined : `kubectl ${verb} ${asks} needs somebody at a terminal`;
}

function converges(verb: string, flags: readonly string[]): boolean {
  if (verb === 'scale') return !flags.some((flag) => /^--(?:current-replicas|resource-version)(?:=|$)/.test(flag));
  const condition = CONVERGING_WITH[verb];
  return condition === undefined ? CONVERGING.has(verb) || verb.startsWith('apply ') : isSet(flags, condition);
}

/** `--flag`, `--flag=true`, and short ones also in a cluster: `-it`. */
function isSet(flags: readonly string[], flag: string): boolean {
  if (flag.startsWith('--')) return flags.some((given) => given === flag || given === `${flag}=true`);
  return flags.some((given) => /^-[a-zA-Z]+$/.test(given) && given.includes(flag.slice(1)));
}
