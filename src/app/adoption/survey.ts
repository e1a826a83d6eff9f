import type { AdoptionRecord, KnownFile, LegacyAgent, LegacyFiles, PairFacts } from '../../domain/adoption/model.js';
import { decodeAdoption, decodeLegacy } from '../../domain/adoption/schema.js';
import { describeProblem } from '../../domain/config/problem.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { AbsolutePath } from '../../domain/kernel/paths.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Pair, PairStore } from '../../ports/certificate/pair-store.js';
import type { Clock } from '../../ports/clock.js';
import type { ConfigSource } from '../../ports/config/config-source.js';
import type { MachineFiles } from '../../ports/files/machine-files.js';

/** Where everything stands, each with the prefix of all paths. */
export interface AdoptionPlaces {
  /** The older agent's configuration. */
  readonly legacyConfig: AbsolutePath;
  /** Where a path stands that the older agent's configuration names. */
  readonly under: (path: AbsolutePath) => AbsolutePath;
  /** What an adoption did. */
  readonly record: AbsolutePath;
  /** The configuration that is made, and its folder. */
  readonly config: AbsolutePath;
  readonly configFolder: AbsolutePath;
  /** A configuration that goes before it. */
  readonly hidingConfig: AbsolutePath;
  readonly enrolment: AbsolutePath;
  readonly registrationRoot: AbsolutePath;
}

export interface AdoptionParts {
  readonly places: AdoptionPlaces;
  readonly files: MachineFiles;
  readonly pairs: PairStore;
  /** The older agent's configuration. */
  readonly legacy: ConfigSource;
  /** @throws AgentError `certificate.unusable` when the parts are not whole, or do not belong together */
  readonly readPair: (pair: Pair) => PairFacts;
  /** Hex. */
  readonly sha256: (text: string) => string;
  readonly clock: Clock;
}

/** What the older agent has, as it was read. */
export interface LegacyMaterial {
  readonly agent: LegacyAgent;
  readonly source: AdoptionRecord['source'];
  readonly pair: Pair;
  readonly publicCa: string | undefined;
}

/** @throws AgentError `adoption.not_found`, `adoption.refused`, `adoption.file_failed` */
export async function surveyLegacy(parts: AdoptionParts, options: CallOptions): Promise<LegacyMaterial> {
  const { files, legacy, places, sha256 } = parts;
  const [text, config] = [await files.read(places.legacyConfig, options), await legacy.read(options)];
  if (text === undefined || config === undefined) {
    throw new AgentError('adoption.not_found', { problem: `there is no ${places.legacyConfig}` });
  }
  if (config.problems.length > 0) throw refused(config.problems.map(describeProblem));
  const reading = decodeLegacy(config.value);
  if (!reading.valid) throw refused(reading.problems.map((problem) => `${places.legacyConfig}: ${problem}`));
  const { agent } = reading;
  const paths = placed(agent.files, places);
  const certificate = await needed(files, paths.certificate, options);
  const privateKey = await needed(files, paths.privateKey, options);
  const ca = await needed(files, paths.ca, options);
  const publicCa = paths.publicCa === undefined ? undefined : await files.read(paths.publicCa, options);
  const known = (path: AbsolutePath, content: string): KnownFile => ({ path, sha256: sha256(content) });
  const source = {
    config: known(places.legacyConfig, text),
    certificate: known(paths.certificate, certificate),
    privateKey: known(paths.privateKey, privateKey),
    ca: known(paths.ca, ca),
    publicCa: paths.publicCa === undefined || publicCa === undefined ? undefined : known(paths.publicCa, publicCa),
  };
  return { agent, source, pair: { certificate, privateKey, ca }, publicCa };
}

function placed({ certificate, privateKey, ca, publicCa }: LegacyFiles, { under }: AdoptionPlaces): LegacyFiles {
  return {
    certificate: under(certificate),
    privateKey: under(privateKey),
    ca: under(ca),
    publicCa: publicCa === undefined ? undefined : under(publicCa),
  };
}

async function needed(files: MachineFiles, path: AbsolutePath, options: CallOptions): Promise<string> {
  const text = await files.read(path, options);
  if (text === undefined) throw refused([`${path} is not there`]);
  return text;
}

/** @throws AgentError `adoption.refused` when what stands there is no record, `adoption.file_failed` */
export async function readRecord(
  { files, places }: Pick<AdoptionParts, 'files' | 'places'>,
  options: CallOptions,
): Promise<AdoptionRecord | undefined> {
  const text = await files.read(places.record, options);
  if (text === undefined) return undefined;
  const record = decodeAdoption(text);
  if (record === undefined) throw refused([`${places.record} cannot be read: it was changed, or is of a newer version`]);
  return record;
}

export function refused(problems: readonly string[]): AgentError {
  const [first = 'it cannot be done'] = problems;
  const told = problems.length <= 1 ? first : [`${problems.length} problems`, ...problems.map((each) => `  ${each}`)].join('\n');
  return new AgentError('adoption.refused', { problem: told });
}
