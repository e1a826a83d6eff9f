import { AgentError } from '../kernel/errors.js';

export type ConfigPath = readonly string[];

export type ConfigOrigin =
  | { readonly from: 'file'; readonly file: string; readonly line?: number | undefined }
  | { readonly from: 'environment'; readonly variable: string }
  | { readonly from: 'flag'; readonly flag: string };

/** Something that is wrong with the configuration, and where. */
export interface ConfigProblem {
  readonly origin: ConfigOrigin;
  /** Dotted; empty for the whole file. */
  readonly path: string;
  readonly problem: string;
}

/** A configuration file as it was when it was read. */
export interface ConfigFile {
  /** Its name for people. */
  readonly file: string;
  /** Plain data; `undefined` when the file is empty or cannot be read. */
  readonly value: unknown;
  /** Why it cannot be read, or what of it cannot. */
  readonly problems: readonly ConfigProblem[];
  /** Line, from 1, of the key at `path`, or of the nearest one above it that is there. */
  lineOf(path: ConfigPath): number | undefined;
}

/** `holdfast.yaml:3: metrics.listen: expected address:port or off, found 9193`. */
export function describeProblem({ origin, path, problem }: ConfigProblem): string {
  return [describeOrigin(origin), ...(path === '' ? [] : [path]), problem].join(': ');
}

function describeOrigin(origin: ConfigOrigin): string {
  switch (origin.from) {
    case 'file':
      return origin.line === undefined ? origin.file : `${origin.file}:${origin.line}`;
    case 'environment':
      return origin.variable;
    case 'flag':
      return origin.flag;
  }
}

/** All problems in one error, one a line; then the warnings, of which one may say where a problem comes from. */
export function configError(problems: readonly ConfigProblem[], warnings: readonly string[] = []): AgentError {
  const lines = problems.map(describeProblem);
  const [first = 'the configuration is invalid'] = lines;
  const told = lines.length <= 1 ? [first] : [`${lines.length} problems`, ...lines.map((line) => `  ${line}`)];
  return new AgentError('config.invalid', { problem: [...told, ...warnings.map((warning) => `  ${warning}`)].join('\n') });
}
