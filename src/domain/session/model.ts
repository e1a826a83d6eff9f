import type { Tag } from '../instruction/model.js';
import type { PortNumber } from '../kernel/network.js';

/** Correlates the frames of one session: the tag of its `OPEN_STREAM`. */
export type SessionId = Tag;

/** Of one node at a time; one more is refused and never waits. */
export const MAX_SESSIONS = 16;
/** So much output goes into one frame: a heartbeat waits for at most one of them. */
export const FRAME_BYTES = 16 * 1024;
/** Of the connection to the service and its handshake. */
export const DIAL_MS = 10_000;
/** One `STREAM_DATA` to a node holds at most so much. */
export const MAX_INPUT_BYTES = 1024 * 1024 - 1;
/** Input that a service has not taken. The protocol cannot slow down whoever sends it, so that more ends the session. */
export const MAX_UNSENT_BYTES = 4 * 1024 * 1024;
/** Longest text message to a service: 256 KiB of bytes that are no UTF-8 become 768 KiB of U+FFFD, below 1 MiB. */
export const INPUT_PIECE_BYTES = 256 * 1024;

export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

/** A service of the cluster, by its name. */
export interface ServiceName {
  readonly namespace: string;
  readonly name: string;
  readonly port: PortNumber;
}

/** What a session is opened to: a WebSocket of a service. */
export interface SessionTarget extends ServiceName {
  /** Empty, or beginning with `/`; with a query, if there is one. */
  readonly path: string;
  /** Without those that belong to the handshake. */
  readonly headers: Readonly<Record<string, string>>;
  readonly subprotocols: readonly string[];
  /** Undefined where there is no terminal. */
  readonly size: TerminalSize | undefined;
}

/** Why a session is over, for people. */
export interface SessionEnd {
  readonly reason: string;
  readonly error: boolean;
}

/** The only name that is ever dialled for it. */
export function hostOf({ name, namespace }: ServiceName): string {
  return `${name}.${namespace}.svc.cluster.local`;
}

/** As a service is told of a terminal's size: JSON in a text message. */
export function resizeText({ cols, rows }: TerminalSize): string {
  return JSON.stringify({ type: 'resize', cols, rows });
}

/** Pieces of at most `most` bytes, in order; none of nothing. */
export function* piecesOf(bytes: Uint8Array, most: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += most) yield bytes.subarray(at, at + most);
}
