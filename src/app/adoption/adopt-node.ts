import type { AdoptionRecord } from '../../domain/adoption/model.js';
import { planAdoption } from '../../domain/adoption/plan.js';
import { encodeAdoption, renderAdopted } from '../../domain/adoption/render.js';
import { encodeEnrolment } from '../../domain/certificate/enrolment.js';
import type { CallOptions } from '../../ports/call-options.js';
import { type AdoptionParts, type LegacyMaterial, readRecord, refused, surveyLegacy } from './survey.js';

/** Of a node of an older agent: what taking it over does, or has done. */
export interface Adoption {
  readonly record: AdoptionRecord;
  /** Wall clock, milliseconds: until when its certificate is valid. */
  readonly certificateUntil: number;
  /** Whether there was nothing to do any more. */
  readonly isDone: boolean;
  /** The texts that are put in place, for `apply`. */
  readonly material: LegacyMaterial;
  readonly configText: string;
  readonly enrolmentText: string;
}

/**
 * What is to be done; changes nothing.
 * @throws AgentError `adoption.not_found`, `adoption.refused`, `adoption.file_failed`, `certificate.unusable`
 */
export async function surveyAdoption(parts: AdoptionParts, options: CallOptions): Promise<Adoption> {
  const { clock, files, pairs, places, readPair, sha256 } = parts;
  const material = await surveyLegacy(parts, options);
  const { agent, source, publicCa } = material;
  const pair = readPair(material.pair);
  const former = await readRecord(parts, options);
  const configText = renderAdopted(agent);
  const config = await files.read(places.config, options);
  const isHidden = (await files.read(places.hidingConfig, options)) !== undefined;
  const verdict = planAdoption(
    {
      agent,
      source,
      pair,
      record: former,
      current: (await pairs.load(options)).current?.serial,
      isEnrolled: (await files.read(places.enrolment, options)) !== undefined,
      config: config === undefined ? undefined : { path: places.config, sha256: sha256(config) },
      wantedConfig: sha256(configText),
      hiding: isHidden ? places.hidingConfig : undefined,
    },
    clock.now(),
  );
  if (verdict.verdict === 'refused') throw refused(verdict.problems);
  const { nid, aid } = verdict.verdict === 'nothing' ? verdict.record : verdict;
  const enrolmentText = encodeEnrolment({ servers: [agent.server], nid, aid });
  const made = {
    config: { path: places.config, sha256: sha256(configText) },
    enrolment: { path: places.enrolment, sha256: sha256(enrolmentText) },
    registrationRoot: publicCa === undefined ? undefined : { path: places.registrationRoot, sha256: sha256(publicCa) },
  };
  const fresh = { state: 'taking', at: clock.now(), nid, aid, server: agent.server, serial: pair.serial, source, made } as const;
  return {
    record: verdict.verdict === 'nothing' ? verdict.record : fresh,
    certificateUntil: pair.notAfter,
    isDone: verdict.verdict === 'nothing',
    material,
    configText,
    enrolmentText,
  };
}

/**
 * Takes the node over. The older agent's files stay as they are. Killed in between, the same again goes on.
 * @throws AgentError `adoption.file_failed`, `certificate.not_written`
 */
export async function adopt(
  { files, pairs, places }: Pick<AdoptionParts, 'files' | 'pairs' | 'places'>,
  { record, isDone, material, configText, enrolmentText }: Adoption,
  options: CallOptions,
): Promise<AdoptionRecord> {
  if (isDone) return record;
  // Before anything of it is there: an undo then knows what to look for.
  await files.replace([recordFile(places, record)], options);
  const { serial } = await pairs.stage(material.pair, options);
  await pairs.activate(serial, options);
  const { publicCa } = material;
  await files.replace(
    [
      { path: places.enrolment, text: enrolmentText, mode: 0o600 },
      ...(publicCa === undefined ? [] : [{ path: places.registrationRoot, text: publicCa, mode: 0o644 }]),
      { path: places.config, text: configText, mode: 0o600 },
    ],
    options,
  );
  const taken: AdoptionRecord = { ...record, state: 'taken' };
  await files.replace([recordFile(places, taken)], options);
  return taken;
}

export function recordFile({ record: path }: AdoptionParts['places'], record: AdoptionRecord) {
  return { path, text: encodeAdoption(record), mode: 0o600 };
}
