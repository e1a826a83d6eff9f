import { decodeBase64, decodedLength, encodeBase64 } from '../link/base64.js';
import type { LinkMessage } from '../link/model.js';
import { payloadOf, readPayload } from '../link/payload.js';
import { type Tag, tag } from './model.js';

/** What a running script says, while it runs (engine.md A17). Its result has it all again. */
export const OUTPUT_TYPE = 'INSTRUCTION_OUTPUT';

export const outputStreams = ['stdout', 'stderr'] as const;
export type OutputStream = (typeof outputStreams)[number];

export interface OutputPiece {
  /** The instruction whose script says it. */
  readonly of: Tag;
  readonly stream: OutputStream;
  /** Bytes that the stream has said before these: a number that is higher than expected is the mark of a gap. */
  readonly seq: number;
  readonly bytes: Uint8Array;
}

/** Bytes of one message. */
export const OUTPUT_PIECE_BYTES = 16 * 1024;
/** Of a message that comes: base64 twice, and room. */
const MOST_MESSAGE_BYTES = 2 * OUTPUT_PIECE_BYTES;

/** @param own a tag of its own, never the instruction's */
export function outputMessage({ of, stream, seq, bytes }: OutputPiece, own: string): LinkMessage {
  return { type: OUTPUT_TYPE, tag: own, jsonB64: payloadOf({ of, stream, seq, dataB64: encodeBase64(bytes) }) };
}

/** Undefined for what is none. */
export function readOutput(jsonB64: string): OutputPiece | undefined {
  const payload = readPayload(jsonB64, MOST_MESSAGE_BYTES);
  if (!payload.ok || typeof payload.value !== 'object' || payload.value === null) return undefined;
  const { of, stream, seq, dataB64 } = payload.value as Readonly<Record<string, unknown>>;
  const whose = typeof of === 'string' ? tag(of) : undefined;
  const which = outputStreams.find((name) => name === stream);
  if (whose === undefined || which === undefined || typeof dataB64 !== 'string') return undefined;
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq) || seq < 0) return undefined;
  if ((decodedLength(dataB64) ?? 0) > OUTPUT_PIECE_BYTES) return undefined;
  const bytes = decodeBase64(dataB64);
  return bytes === undefined || bytes.length === 0 ? undefined : { of: whose, stream: which, seq, bytes };
}

/** Of one piece what is at `seen` or behind it: a node that was started again says things twice. Undefined when nothing is. */
export function newerThan(piece: OutputPiece, seen: number): OutputPiece | undefined {
  const known = seen - piece.seq;
  if (known <= 0) return piece;
  return known >= piece.bytes.length ? undefined : { ...piece, seq: seen, bytes: piece.bytes.subarray(known) };
}

/** In any second, of whole messages, with what is saved up: 64 KiB and 192 KiB in the second after a pause. */
const SAVED_BYTES = 64 * 1024;
const BYTES_PER_SECOND = 192 * 1024;

/** How much live output an agent may send now: 256 KiB in any second (engine.md A17). Times are of a clock that never goes back. */
export class OutputBudget {
  #bytes = SAVED_BYTES;
  #at: number;

  constructor(now: number) {
    this.#at = now;
  }

  /** Bytes of messages; 0 when there is none. */
  left(now: number): number {
    this.#bytes = Math.min(SAVED_BYTES, this.#bytes + ((now - this.#at) * BYTES_PER_SECOND) / 1_000);
    this.#at = now;
    return Math.max(0, Math.floor(this.#bytes));
  }

  spend(bytes: number): void {
    this.#bytes -= bytes;
  }
}
