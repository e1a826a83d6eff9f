/** What an archive of a control plane can hold; the sealing key only when it is asked for. */
export const backupFiles = ['log.db', 'control.db', 'sealing.key'] as const;
export type BackupFile = (typeof backupFiles)[number];

/** The first file of an archive: what the others must be. */
export const MANIFEST_NAME = 'holdfast-backup.json';
/** A program reads manifests up to this one. */
export const MANIFEST_FORMAT = 1;

export interface BackedUpFile {
  readonly name: BackupFile;
  readonly bytes: number;
  /** Hex. */
  readonly sha256: string;
}

export interface BackupManifest {
  /** Version of the program that made it. */
  readonly program: string;
  /** Wall clock, milliseconds: what happened later is not in it. */
  readonly madeAt: number;
  /** Id of the log, and the newest revision in it. */
  readonly logId: string;
  readonly revision: bigint;
  readonly files: readonly BackedUpFile[];
}
