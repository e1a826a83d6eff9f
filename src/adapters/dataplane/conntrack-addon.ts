/** `error` has the errno's name as `code`. */
export interface NativeFlowTally {
  readonly done: number;
  readonly gone: number;
  readonly failed: number;
  readonly error?: Error;
}

export interface NativeChallengeTally {
  readonly sent: number;
  readonly failed: number;
  readonly error?: Error;
}

export interface NativeFlowFilter {
  readonly family?: 4 | 6;
  /** 0: any. */
  readonly protocol?: number;
  readonly mark?: number;
  readonly markMask?: number;
  readonly zone?: number;
}

/** Rows and selectors are those of native/core/conntrack_row.h. Wrong arguments throw a TypeError. */
export interface ConntrackFunctions {
  /** One of the selectors must match, unless there is none. Rejects with an Error with the errno's name as `code`. */
  listFlows(filter: NativeFlowFilter, selectors: Uint8Array): Promise<Uint8Array>;
  removeFlows(rows: Uint8Array): Promise<NativeFlowTally>;
  markFlows(rows: Uint8Array, mark: number, mask: number): Promise<NativeFlowTally>;
  challengeFlows(rows: Uint8Array, packetMark: number): Promise<NativeChallengeTally>;
}
