/** What is recorded; sequence, times and the digest of the line before are added by the log. Payloads never are, only their digest. */
export interface AuditRecord {
  /** `server:<id>` with the epoch, or `local:<uid>`. */
  readonly who: string;
  readonly tag: string;
  readonly type: string;
  /** SHA-256 in hex. */
  readonly payloadDigest: string;
  /** The rule that decided. */
  readonly rule: string;
  /** `allowed`, `denied` …, or how it ended. */
  readonly line: 'decision' | 'outcome';
  readonly result: string;
}

/** The newest line: shows whether a tail was cut. */
export interface AuditHead {
  readonly sequence: bigint;
  /** SHA-256 in hex of the line's bytes as written. */
  readonly digest: string;
}
