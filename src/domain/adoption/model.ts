import type { Validity } from '../certificate/validity.js';
import type { HostPort, IpAddress } from '../kernel/network.js';
import type { AbsolutePath } from '../kernel/paths.js';
import type { Aid, Nid } from '../link/model.js';

/** Where an agent of the same protocol, made by others, keeps its configuration. */
export const LEGACY_CONFIG = '/etc/runos/config.yaml' as AbsolutePath;
/** The lock that it holds, and that an agent which uses its material holds as well (engine.md B5). */
export const LEGACY_LOCK = '/run/runos/agent.lock' as AbsolutePath;

/** What the older agent's configuration says. */
export interface LegacyAgent {
  /** Undefined: not said, and then the certificate's organisation and name count. */
  readonly aid: Aid | undefined;
  readonly nid: Nid | undefined;
  /** Of the mutual channel. */
  readonly server: HostPort;
  readonly installer: string | undefined;
  readonly conductor: string | undefined;
  readonly nodeIp: IpAddress | undefined;
  readonly files: LegacyFiles;
  /** SHA-256 in hex that the root of the registration must have. */
  readonly publicCaSha256: string | undefined;
}

export interface LegacyFiles {
  readonly certificate: AbsolutePath;
  readonly privateKey: AbsolutePath;
  readonly ca: AbsolutePath;
  readonly publicCa: AbsolutePath | undefined;
}

/** A certificate with its key and root, as somebody who wants to use them reads them. */
export interface PairFacts extends Validity {
  /** Lower-case hex without leading zeros. */
  readonly serial: string;
  /** Of the subject, or of our own name in it. Undefined: there is none, or it is no name of ours. */
  readonly nid: Nid | undefined;
  readonly aid: Aid | undefined;
  /** Whether the root has signed it. */
  readonly isOfRoot: boolean;
}

/** A file and the SHA-256 of its bytes, in hex. */
export interface KnownFile {
  readonly path: AbsolutePath;
  readonly sha256: string;
}

/**
 * `taking`: what follows from it may be there in part. `taken`: all of it is. `returning`: a renewed pair is being written over the
 * older agent's. `returned`: it is there, and what was made is being removed.
 */
export const adoptionStates = ['taking', 'taken', 'returning', 'returned'] as const;
export type AdoptionState = (typeof adoptionStates)[number];

/** What an adoption did, in the data directory: all that is needed to go on with it, or to undo it, from wherever it was left. */
export interface AdoptionRecord {
  readonly state: AdoptionState;
  /** Wall clock, milliseconds. */
  readonly at: number;
  readonly nid: Nid;
  readonly aid: Aid;
  readonly server: HostPort;
  /** Of the certificate that was taken. */
  readonly serial: string;
  readonly source: {
    readonly config: KnownFile;
    readonly certificate: KnownFile;
    readonly privateKey: KnownFile;
    readonly ca: KnownFile;
    readonly publicCa: KnownFile | undefined;
  };
  /** Beside the pair. */
  readonly made: { readonly config: KnownFile; readonly enrolment: KnownFile; readonly registrationRoot: KnownFile | undefined };
}
