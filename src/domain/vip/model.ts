import type { IpAddress } from '../kernel/network.js';

/**
 * How far the control plane is: it grows with every change of the holder, an int64. What is not greater than the last that was applied
 * comes too late.
 */
export type Generation = bigint;

/** The largest int64. */
export const MAX_GENERATION = 2n ** 63n - 1n;

/** From the receipt of VIP_ASSIGN, or the sending of what was answered (engine.md V1): the server gives it to nobody else for 30 s. */
export const HOLD_MS = 25_000;
/** Without an answer for so long it is given up at once (engine.md V2). */
export const SILENCE_MS = 15_000;
/** A process that did not look for so long was stopped or slept: others may have it by now (engine.md V1). */
export const GAP_MS = 5_000;
/** The server asks another node 5 s after VIP_ASSIGN: what is not in force by then is undone (engine.md V2). */
export const ASSIGN_MS = 4_000;
/** What is later than this is not answered any more: it would name a holder that the server has left (engine.md A8). */
export const ASSIGN_REPLY_MS = 5_000;
export const RELEASE_REPLY_MS = 3_000;

export const disconnectModes = ['drop', 'keep'] as const;
/** What the holder does without its control plane: give it up, or hold on and give way to whoever else has it. */
export type OnDisconnect = (typeof disconnectModes)[number];

/** Who has the address, as the control plane says it. */
export interface HolderAnswer {
  readonly isHolder: boolean;
  readonly generation: Generation;
}

/** An address of the machine. */
export interface PlacedAddress {
  readonly interface: string;
  readonly address: IpAddress;
  readonly prefixLength: number;
  /** Until the kernel takes it away; undefined: never. */
  readonly validSeconds: number | undefined;
}

export type VipPlan =
  | { readonly do: 'assign_vip'; readonly generation: Generation }
  | { readonly do: 'release_vip'; readonly generation: Generation };
