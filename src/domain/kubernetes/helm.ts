import type { Answer } from '../instruction/model.js';
import { cutForJson, MAX_TEXTS_JSON } from '../instruction/text.js';
import { failureText, type ProgramEnd } from './model.js';

export interface HelmRelease {
  readonly release: string;
  readonly namespace: string;
}

export interface HelmInstallPlan extends HelmRelease {
  readonly do: 'helm_install';
  /** `https://…`, or `oci://…`. */
  readonly repoUrl: string;
  readonly chart: string;
  /** Empty: the newest. */
  readonly version: string;
  /** `https://…`; empty: the chart's own values. */
  readonly valuesUrl: string;
  readonly timeoutMs: number;
}

export interface HelmUninstallPlan extends HelmRelease {
  readonly do: 'helm_uninstall';
  readonly timeoutMs: number;
}

/** A row of `helm history -o json`. */
export interface ReleaseState {
  readonly revision: number;
  /** `deployed`, `failed`, `pending-install`, `pending-upgrade`, `pending-rollback`, `uninstalling` … */
  readonly status: string;
  /** `<name>-<version>`. */
  readonly chart: string;
  /** Wall clock, milliseconds; undefined when it cannot be read. */
  readonly updatedAt: number | undefined;
}

export const HELM_FILES = { repositories: 'repositories.yaml', values: 'values.yaml' } as const;

/** Everything that helm writes stands in the folder of the task: two runs share neither repositories nor cache (engine.md A8). */
export function installArgv(
  { release, namespace, repoUrl, chart, version }: HelmInstallPlan,
  hasValues: boolean,
): readonly [string, ...string[]] {
  const isOci = repoUrl.startsWith('oci://');
  const folder = `%f/${HELM_FILES.repositories}`;
  return [
    'helm',
    ...['upgrade', '--install', release, isOci ? `${repoUrl.replace(/\/+$/, '')}/${chart}` : chart],
    ...(isOci ? [] : ['--repo', repoUrl]),
    ...['--namespace', namespace, '--create-namespace'],
    ...(version === '' ? [] : ['--version', version]),
    ...(hasValues ? ['--values', `%f/${HELM_FILES.values}`] : []),
    ...['--repository-config', folder, '--repository-cache', `${folder}.cache`, '--registry-config', `${folder}.registry.json`],
  ];
}

/** Every version of helm has it, and it shows revisions of every status, the oldest first. */
export function historyArgv({ release, namespace }: HelmRelease): readonly [string, ...string[]] {
  return ['helm', 'history', release, '--namespace', namespace, '--output', 'json'];
}

/** The newest revision that was whole; undefined: the release was never installed. */
export function lastGood(history: readonly Pick<ReleaseState, 'revision' | 'status'>[]): number | undefined {
  const good = history.filter(({ status }) => status === 'deployed' || status === 'superseded');
  return good.length === 0 ? undefined : Math.max(...good.map(({ revision }) => revision));
}

export type HelmDecision =
  | { readonly do: 'install' }
  /** An earlier attempt of the same instruction has done it. */
  | { readonly do: 'done'; readonly state: ReleaseState }
  /** Whoever changed it is dead: back to the last whole revision, then install. */
  | { readonly do: 'recover' };

/** helm's own time-out is 5 min, the instruction's 15: who holds a release for longer has died. */
const DEAD_AFTER_MS = 15 * 60_000;

/**
 * What becomes of a release before it is installed.
 * @param state of now; undefined: there is none
 * @param before the revision when an earlier attempt of this instruction began; undefined: there was none
 */
export function decideInstall(
  plan: HelmInstallPlan,
  state: ReleaseState | undefined,
  before: number | undefined,
  now: number,
): HelmDecision {
  if (state === undefined) return { do: 'install' };
  const isOurs = before !== undefined && state.revision > before;
  if (isOurs && state.status === 'deployed' && isOfChart(state.chart, plan)) return { do: 'done', state };
  const isPending = state.status.startsWith('pending-') || state.status === 'uninstalling';
  const isDead = isOurs || state.updatedAt === undefined || now - state.updatedAt >= DEAD_AFTER_MS;
  return isPending && isDead ? { do: 'recover' } : { do: 'install' };
}

function isOfChart(text: string, { chart, version }: HelmInstallPlan): boolean {
  const name = chart.split('/').at(-1) ?? chart;
  return version === ''
    ? text.startsWith(`${name}-`)
    : text === `${name}-${version.replace(/^v/, '')}` || text === `${name}-${version}`;
}

export function doneText({ release, namespace }: HelmRelease, { revision, chart }: ReleaseState): string {
  return `release ${release} in ${namespace} is deployed: revision ${revision}, chart ${chart}`;
}

/** Of `INSTALL_HELM_CHART` or `UNINSTALL_HELM_CHART`. */
export function helmAnswer(type: HelmType, end: ProgramEnd): Answer {
  if (end.exitCode !== 0) return helmFailure(type, failureText('helm', end));
  const response = cutForJson(end.stdout === '' ? end.stderr : end.stdout, MAX_TEXTS_JSON, end.dropped);
  return { kind: 'json', type: `${type}_RESPONSE`, value: { response } };
}

export type HelmType = 'INSTALL_HELM_CHART' | 'UNINSTALL_HELM_CHART';

export function helmFailure(type: HelmType, response: string): Answer {
  return { kind: 'json', type: `${type}_ERROR`, value: { response } };
}

/** What helm says of a release that is not there. */
export function isAbsent({ exitCode, stderr }: ProgramEnd): boolean {
  return exitCode !== 0 && /release: not found/i.test(stderr);
}

/**
 * Rows of `helm history`; undefined when it is not what helm prints.
 * @param instant milliseconds since the Unix epoch, NaN for what is no time
 */
export function readReleases(json: unknown, instant: (text: string) => number): readonly ReleaseState[] | undefined {
  if (json === null) return [];
  if (!Array.isArray(json)) return undefined;
  const states = json.map((row) => readRelease(row, instant));
  return states.every((state) => state !== undefined) ? states : undefined;
}

function readRelease(value: unknown, instant: (text: string) => number): ReleaseState | undefined {
  if (typeof value !== 'object' || value === null || !('revision' in value) || !('status' in value) || !('chart' in value))
    return undefined;
  const { status, chart } = value;
  const revision = Number(value.revision);
  if (typeof status !== 'string' || typeof chart !== 'string' || !Number.isInteger(revision)) return undefined;
  const updated = 'updated' in value && typeof value.updated === 'string' ? instant(value.updated) : Number.NaN;
  return { revision, status, chart, updatedAt: Number.isNaN(updated) ? undefined : updated };
}
