import { closest } from '../kernel/suggest.js';
import { defaults } from './defaults.js';
import { type Config, flagOf, type Mode, type Setting, type SettingFacts, settingNames, settings, variableOf } from './model.js';
import { type ConfigFile, type ConfigOrigin, type ConfigPath, type ConfigProblem, configError } from './problem.js';
import { type ConfigLayer, layerSchema } from './schema.js';

/** Variables that are read elsewhere: they say where things are before there is a configuration. A task's program has the last one. */
const otherVariables: readonly string[] = [
  'HOLDFAST_CONFIG',
  'HOLDFAST_DATA_DIR',
  'HOLDFAST_ADMIN',
  'HOLDFAST_ADMIN_CERT',
  'HOLDFAST_ADDON',
  'HOLDFAST_RUNNER',
  'HOLDFAST_TASK',
  'HOLDFAST_TOKEN',
  'HOLDFAST_HANDOVER',
  'HOLDFAST_LAUNCHER',
];

/** All that a configuration is made of, the later over the earlier; each setting is taken whole from one of them. */
export interface ConfigInputs {
  readonly mode: Mode;
  readonly file?: ConfigFile | undefined;
  /** Empty is unset, as service managers and compose files write it. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly flags: Readonly<Partial<Record<Setting, string | undefined>>>;
}

export type ConfigResult =
  | { readonly valid: true; readonly config: Config; readonly warnings: readonly string[] }
  | { readonly valid: false; readonly problems: readonly ConfigProblem[]; readonly warnings: readonly string[] };

/** Reads every source to its end, so that all problems are known at once. */
export function resolveConfig({ mode, file, environment, flags }: ConfigInputs): ConfigResult {
  const readings = [
    ...(file === undefined ? [] : [readFileLayer(mode, file)]),
    readTexts(
      mode,
      (setting) => environment[variableOf(setting)],
      (setting) => ({
        from: 'environment',
        variable: variableOf(setting),
      }),
    ),
    readTexts(
      mode,
      (setting) => flags[setting],
      (setting) => ({ from: 'flag', flag: flagOf(setting) }),
    ),
  ];
  const problems = readings.flatMap((reading) => reading.problems);
  const warnings = unknownVariables(environment);
  if (problems.length > 0) return { valid: false, problems, warnings };
  return { valid: true, config: Object.assign(defaults(mode), ...readings.map(({ layer }) => layer)), warnings };
}

export interface ConfigDiff {
  /** What is to be used from now on: the new values of what can change while running, the old ones of all else. */
  readonly config: Config;
  readonly live: readonly Setting[];
  readonly restart: readonly Setting[];
  /** Is read only when a node gets its identity. */
  readonly minting: readonly Setting[];
}

export function diffConfig(old: Config, wanted: Config): ConfigDiff {
  const changed = settingNames.filter((setting) => text(old[setting]) !== text(wanted[setting]));
  const thatApply = (when: 'live' | 'restart' | 'minting') => changed.filter((setting) => settings[setting].applies === when);
  const live = thatApply('live');
  const taken = Object.fromEntries(live.map((setting) => [setting, wanted[setting]]));
  return { config: { ...old, ...taken }, live, restart: thatApply('restart'), minting: thatApply('minting') };
}

/** What a reload comes to. An invalid configuration changes nothing and stops nothing. */
export interface Reload {
  readonly config: Config;
  readonly live: readonly Setting[];
  readonly warnings: readonly string[];
  readonly error?: string;
}

export function planReload(old: Config, result: ConfigResult): Reload {
  if (!result.valid) {
    const error = `the old configuration stays in use: ${configError(result.problems).message}`;
    return { config: old, live: [], warnings: result.warnings, error };
  }
  const { config, live, restart, minting } = diffConfig(old, result.config);
  const warnings = [
    ...result.warnings,
    ...restart.map((setting) => `${settings[setting].path} changed; it takes effect after a restart`),
    ...minting.map((setting) => `${settings[setting].path} changed; only a node without an identity reads it`),
  ];
  return { config, live, warnings };
}

interface Reading {
  readonly layer: ConfigLayer;
  readonly problems: readonly ConfigProblem[];
}

function readFileLayer(mode: Mode, { file, value, problems, lineOf }: ConfigFile): Reading {
  const origin = (path: ConfigPath): ConfigOrigin => ({ from: 'file', file, line: lineOf(path) });
  const reading = readLayer(mode, value ?? {}, origin);
  return { layer: reading.layer, problems: [...problems, ...reading.problems] };
}

function readTexts(
  mode: Mode,
  textOf: (setting: Setting) => string | undefined,
  originOf: (setting: Setting) => ConfigOrigin,
): Reading {
  const value: Record<string, unknown> = {};
  for (const setting of settingNames) {
    const text = textOf(setting);
    if (text === undefined || text === '') continue;
    place(value, settings[setting].path.split('.'), fromText(text, settings[setting].text));
  }
  return readLayer(mode, value, (path) => {
    const dotted = path.join('.');
    const setting = settingNames.find((each) => dotted === settings[each].path || dotted.startsWith(`${settings[each].path}.`));
    return originOf(known(setting));
  });
}

function place(value: Record<string, unknown>, [key = '', ...below]: ConfigPath, leaf: unknown): void {
  if (below.length === 0) {
    value[key] = leaf;
    return;
  }
  const group: Record<string, unknown> = { ...(value[key] as object | undefined) };
  place(group, below, leaf);
  value[key] = group;
}

function fromText(text: string, as: SettingFacts['text']): unknown {
  switch (as) {
    case 'text':
      return text;
    case 'number':
      return /^\d{1,15}$/.test(text) ? Number(text) : text;
    case 'list':
      return text.split(',');
    case 'pairs': {
      const pairs = text.split(',').map((pair) => /^([^=]+)=(.*)$/.exec(pair)?.slice(1) ?? []);
      return pairs.every((pair) => pair.length === 2) ? Object.fromEntries(pairs) : text;
    }
  }
}

function readLayer(mode: Mode, value: unknown, originOf: (path: ConfigPath) => ConfigOrigin): Reading {
  const parsed = layerSchema(mode).safeParse(value);
  if (parsed.success) return { layer: parsed.data, problems: [] };
  const problems = parsed.error.issues.flatMap((issue): ConfigProblem[] => {
    const path = issue.path.map(String);
    const at = (where: ConfigPath, problem: string) => ({ origin: originOf(where), path: where.join('.'), problem });
    if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => at([...path, key], unknownKey(path, key)));
    const expected = issue.code === 'custom' ? issue.message : `keys and values: ${keysAt(path).join(', ')}`;
    return [at(path, `expected ${expected}, found ${describeValue(valueAt(value, path))}`)];
  });
  return { layer: {}, problems };
}

function unknownKey(path: ConfigPath, key: string): string {
  const keys = keysAt(path);
  const elsewhere = settingNames.map((setting) => settings[setting].path).filter((each) => each.endsWith(`.${key}`));
  const meant = closest(key, keys) ?? elsewhere[0];
  return meant === undefined ? `unknown key, expected one of ${keys.join(', ')}` : `unknown key, did you mean ${meant}?`;
}

/** The keys that may stand below `path`. */
function keysAt(path: ConfigPath): readonly string[] {
  const start = path.map((part) => `${part}.`).join('');
  const below = settingNames.map((setting) => settings[setting].path).filter((each) => each.startsWith(start));
  return [...new Set(below.map((each) => each.slice(start.length).replace(/\..*/, '')))];
}

function unknownVariables(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  const names = [...settingNames.map(variableOf), ...otherVariables];
  return Object.keys(environment)
    .filter((name) => name.startsWith('HOLDFAST_') && !names.includes(name))
    .sort()
    .map((name) => {
      const meant = closest(name, names);
      return `unknown environment variable ${name} is not used${meant === undefined ? '' : `, did you mean ${meant}?`}`;
    });
}

function valueAt(value: unknown, path: ConfigPath): unknown {
  let at = value;
  for (const key of path) at = typeof at === 'object' && at !== null ? new Map(Object.entries(at)).get(key) : undefined;
  return at;
}

function describeValue(value: unknown): string {
  if (value === undefined || value === null) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'keys and values';
  const shown = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return shown.length <= 80 ? shown : `${shown.slice(0, 79)}…`;
}

/** Settings are plain data; the order of labels means nothing. */
function text(value: Config[Setting]): string | undefined {
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );
}

function known<T>(value: T | undefined): T {
  if (value === undefined) throw new RangeError('a constant of the configuration is invalid');
  return value;
}
