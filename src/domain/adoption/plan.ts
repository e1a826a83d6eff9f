import { resolveConfig } from '../config/plan.js';
import { describeProblem } from '../config/problem.js';
import { formatInstant } from '../kernel/instant.js';
import type { Aid, Nid } from '../link/model.js';
import type { AdoptionRecord, KnownFile, LegacyAgent, PairFacts } from './model.js';
import { adoptedSettings } from './render.js';

/** All that an adoption depends on. Digests are SHA-256 in hex. */
export interface AdoptionFacts {
  readonly agent: LegacyAgent;
  readonly source: AdoptionRecord['source'];
  readonly pair: PairFacts;
  readonly record: AdoptionRecord | undefined;
  /** Serial of the pair that this agent uses already. */
  readonly current: string | undefined;
  /** Whether the data directory says where it was registered. */
  readonly isEnrolled: boolean;
  /** What stands where the configuration is to be put. */
  readonly config: KnownFile | undefined;
  /** Digest of the configuration that is to be put there. */
  readonly wantedConfig: string;
  /** A configuration that would be read instead. */
  readonly hiding: string | undefined;
}

export type AdoptionVerdict =
  /** All of it was done before. */
  | { readonly verdict: 'nothing'; readonly record: AdoptionRecord }
  | { readonly verdict: 'adopt'; readonly nid: Nid; readonly aid: Aid }
  | { readonly verdict: 'refused'; readonly problems: readonly string[] };

/** @param now wall clock, milliseconds */
export function planAdoption(facts: AdoptionFacts, now: number): AdoptionVerdict {
  const { pair, record } = facts;
  if (record?.state === 'taken' && isSame(record.source, facts.source)) return { verdict: 'nothing', record };
  const problems = [...pairProblems(facts, now), ...placeProblems(facts), ...settingProblems(facts.agent)];
  const { nid, aid } = pair;
  if (problems.length > 0 || nid === undefined || aid === undefined) return { verdict: 'refused', problems };
  return { verdict: 'adopt', nid, aid };
}

function isSame(a: AdoptionRecord['source'], b: AdoptionRecord['source']): boolean {
  const parts = ['config', 'certificate', 'privateKey', 'ca', 'publicCa'] as const;
  return parts.every((part) => a[part]?.path === b[part]?.path && a[part]?.sha256 === b[part]?.sha256);
}

function pairProblems({ agent, source, pair }: AdoptionFacts, now: number): readonly string[] {
  const at = source.certificate.path;
  const { publicCa } = source;
  return [
    ...(pair.isOfRoot ? [] : [`${at} was not signed by ${source.ca.path}`]),
    ...(pair.nid === undefined ? [`${at} names no node: its subject has no usable CN`] : []),
    ...(pair.aid === undefined ? [`${at} names no account: its subject has no usable O`] : []),
    ...(now < pair.notBefore ? [`${at} is valid from ${formatInstant(pair.notBefore)} on, and it is ${formatInstant(now)}`] : []),
    ...(now >= pair.notAfter ? [`${at} was valid until ${formatInstant(pair.notAfter)}, and it is ${formatInstant(now)}`] : []),
    ...differs('node.nid', agent.nid, pair.nid, at),
    ...differs('client.aid', agent.aid, pair.aid, at),
    ...(publicCa === undefined || agent.publicCaSha256 === undefined || publicCa.sha256 === agent.publicCaSha256
      ? []
      : [`${publicCa.path} has SHA-256 ${publicCa.sha256}, and mtls.public-ca-sha256 is ${agent.publicCaSha256}`]),
  ];
}

function differs(key: string, said: string | undefined, named: string | undefined, at: string): readonly string[] {
  if (said === undefined || named === undefined || said === named) return [];
  return [`${key} is ${said}, and ${at} is of ${named}`];
}

/** What was there before must not be lost, nor hide what is put there. */
function placeProblems(facts: AdoptionFacts): readonly string[] {
  const { record, current, isEnrolled, config, wantedConfig, hiding } = facts;
  return [
    ...stateProblems(record, current, isEnrolled),
    ...(hiding === undefined ? [] : [`${hiding} would be read instead of the configuration that is made: move it away`]),
    ...(config === undefined || config.sha256 === wantedConfig || config.sha256 === record?.made.config.sha256
      ? []
      : [`${config.path} is there already and says something else: move it away`]),
  ];
}

function stateProblems(record: AdoptionRecord | undefined, current: string | undefined, isEnrolled: boolean): readonly string[] {
  switch (record?.state) {
    case undefined:
      return current === undefined && !isEnrolled ? [] : ['this data directory is that of a registered node already'];
    case 'taking':
      return [];
    case 'taken':
      // Only the older agent has a newer certificate: it ran in between.
      return current === record.serial
        ? []
        : ['both agents have changed certificates since the adoption: undo it, or register with a new token'];
    case 'returning':
    case 'returned':
      return ['an undo was begun: end it with `holdfast adopt --undo`'];
  }
}

function settingProblems(agent: LegacyAgent): readonly string[] {
  const file = { file: 'settings', value: adoptedSettings(agent), problems: [], lineOf: () => undefined };
  const result = resolveConfig({ mode: 'production', file, environment: {}, flags: {} });
  return result.valid ? [] : result.problems.map(describeProblem);
}

/** All that an undo depends on. */
export interface ReturnFacts {
  readonly record: AdoptionRecord;
  /** The pair that this agent uses. */
  readonly current: PairFacts | undefined;
  /** Whether the data directory still names the control plane that was adopted. */
  readonly isSameFleet: boolean;
  /** What the older agent's files hold. Undefined: no whole pair. */
  readonly legacy: PairFacts | undefined;
}

export type ReturnPlan =
  /** Its files are what they are to be. */
  | { readonly pair: 'as_it_was' }
  /** The pair was renewed: it is written over the older agent's. */
  | { readonly pair: 'renewed' }
  /** Its files stay as they are, for the reason given. */
  | { readonly pair: 'kept'; readonly reason: string }
  /** This machine is another node by now, and stays that: only the record of the adoption and the configuration go. */
  | { readonly pair: 'registered_anew' };

/** What is to be written back: the newest pair, and only if it is of the node that was adopted. */
export function planReturn({ record, current, isSameFleet, legacy }: ReturnFacts): ReturnPlan {
  if (current !== undefined && (current.nid !== record.nid || current.aid !== record.aid || !isSameFleet)) {
    return { pair: 'registered_anew' };
  }
  if (record.state === 'returned') return { pair: 'as_it_was' };
  if (current === undefined) {
    return record.state === 'taking'
      ? { pair: 'as_it_was' }
      : { pair: 'kept', reason: 'this agent has no certificate any more that could be given back' };
  }
  if (legacy?.serial === current.serial) return { pair: 'as_it_was' };
  if (legacy !== undefined && legacy.notBefore > current.notBefore) {
    return { pair: 'kept', reason: 'the older agent has a newer certificate than this one' };
  }
  return { pair: 'renewed' };
}
