import type { AdoptionRecord, PairFacts } from '../../domain/adoption/model.js';
import { planReturn, type ReturnPlan } from '../../domain/adoption/plan.js';
import { decodeEnrolment } from '../../domain/certificate/enrolment.js';
import { formatHostPort } from '../../domain/kernel/network.js';
import type { AbsolutePath } from '../../domain/kernel/paths.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Pair } from '../../ports/certificate/pair-store.js';
import { recordFile } from './adopt-node.js';
import { type AdoptionParts, readRecord } from './survey.js';

/** What undoing an adoption does. */
export interface Return {
  readonly record: AdoptionRecord;
  readonly plan: ReturnPlan;
  /** The pair that is written over the older agent's, if one is. */
  readonly pair: Pair | undefined;
  /** For people. */
  readonly warnings: readonly string[];
}

/** What is to be done; changes nothing. Undefined: nothing was adopted. @throws AgentError `adoption.refused`, `adoption.file_failed` */
export async function surveyReturn(parts: AdoptionParts, options: CallOptions): Promise<Return | undefined> {
  const record = await readRecord(parts, options);
  if (record === undefined) return undefined;
  const { current, staged } = await parts.pairs.load(options);
  const plan = planReturn({
    record,
    current: current === undefined ? undefined : parts.readPair(current),
    isSameFleet: await namesSameFleet(parts, record, options),
    legacy: await legacyPair(parts, record, options),
  });
  const warnings = [
    ...warningsOf(plan),
    ...(staged === undefined || record.state === 'returned'
      ? []
      : ['a renewal was begun and is not given back: unless the control plane accepts the older agent, register it anew']),
  ];
  return { record, plan, pair: plan.pair === 'renewed' ? current : undefined, warnings };
}

/**
 * Gives back what was adopted: first the pair, if it was renewed; then what was made is removed, and the record of it last. What people
 * have changed since stays. Killed in between, the same again goes on. Returns the paths that stay.
 * @throws AgentError `adoption.file_failed`, `certificate.not_written`, `certificate.unusable` when the pair that was written cannot be used
 */
export async function giveBack(
  parts: AdoptionParts,
  { record, plan, pair }: Return,
  options: CallOptions,
): Promise<readonly AbsolutePath[]> {
  const { files, pairs, places } = parts;
  const { source, made } = record;
  if (pair !== undefined) {
    // Three files are not put in place at once. Until all are, this pair is in the store, and this agent does not start.
    await files.replace([recordFile(places, { ...record, state: 'returning' })], options);
    await files.replace(
      [
        { path: source.ca.path, text: pair.ca, mode: 0o644 },
        { path: source.privateKey.path, text: pair.privateKey, mode: 0o600 },
        { path: source.certificate.path, text: pair.certificate, mode: 0o644 },
      ],
      options,
    );
    parts.readPair(await readLegacy(parts, record, options));
  }
  if (record.state !== 'returned') await files.replace([recordFile(places, { ...record, state: 'returned' })], options);
  const kept: AbsolutePath[] = [];
  const isAnother = plan.pair === 'registered_anew';
  for (const each of isAnother ? [made.config] : [made.config, made.registrationRoot]) {
    if (each === undefined) continue;
    const text = await files.read(each.path, options);
    if (text === undefined || parts.sha256(text) === each.sha256) await files.remove(each.path, options);
    else kept.push(each.path);
  }
  await files.removeEmptyFolder(places.configFolder, options);
  if (!isAnother) {
    await files.remove(made.enrolment.path, options);
    await pairs.clear(options);
  }
  await files.remove(places.record, options);
  return kept;
}

function warningsOf(plan: ReturnPlan): readonly string[] {
  switch (plan.pair) {
    case 'as_it_was':
    case 'renewed':
      return [];
    case 'kept':
      return [`the files of the older agent stay as they are: ${plan.reason}`];
    case 'registered_anew':
      return ['this machine was registered anew since: that registration stays, and the files of the older agent as they are'];
  }
}

/** Another registration names another control plane, or is of another node. */
async function namesSameFleet({ files, places }: AdoptionParts, record: AdoptionRecord, options: CallOptions): Promise<boolean> {
  const text = await files.read(places.enrolment, options);
  if (text === undefined) return true;
  const enrolment = decodeEnrolment(text);
  return enrolment?.servers.some((each) => formatHostPort(each) === formatHostPort(record.server)) ?? false;
}

async function legacyPair(parts: AdoptionParts, record: AdoptionRecord, options: CallOptions): Promise<PairFacts | undefined> {
  try {
    return parts.readPair(await readLegacy(parts, record, options));
  } catch {
    // Not whole: it is what an undo that was killed leaves, and what this one mends.
    return undefined;
  }
}

async function readLegacy({ files }: AdoptionParts, { source }: AdoptionRecord, options: CallOptions): Promise<Pair> {
  const [certificate = '', privateKey = '', ca = ''] = [
    await files.read(source.certificate.path, options),
    await files.read(source.privateKey.path, options),
    await files.read(source.ca.path, options),
  ];
  return { certificate, privateKey, ca };
}
