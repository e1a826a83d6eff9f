import { epoch, type LinkMessage, type ServerMessage } from './model.js';

/** Names of types have at most 40 characters today; tags are what `instruction/model.ts` takes. */
const PRINTABLE = /^[\x20-\x7e]{1,128}$/;
/** Durations are in Node's timers at most 24.8 days; a year of milliseconds is exact in a number. */
const LONGEST_MS = 365n * 24n * 3_600_000n;

/** The fields of either message of the stream, as its decoder gives them; absent ones have their zero. */
export interface WireMessage {
  readonly jsonB64: string;
  readonly type: string;
  readonly tag: string;
}

export interface WireServerMessage extends WireMessage {
  readonly epoch: bigint;
  readonly expiresInMs: bigint;
}

/** Undefined when it has no type or tag that can be used; what `jsonB64` holds is its reader's affair, an `ERROR` holds plain text. */
export function linkMessage({ type, tag, jsonB64 }: WireMessage): LinkMessage | undefined {
  return PRINTABLE.test(type) && PRINTABLE.test(tag) ? { type, tag, jsonB64 } : undefined;
}

/** As `linkMessage`; an epoch below 1 was not said. A remaining time below 0 is over, 0 says that there is none. */
export function serverMessage(wire: WireServerMessage): ServerMessage | undefined {
  const message = linkMessage(wire);
  if (message === undefined) return undefined;
  const left = wire.expiresInMs > LONGEST_MS ? LONGEST_MS : wire.expiresInMs;
  return {
    ...message,
    ...(wire.epoch > 0n ? { epoch: epoch(wire.epoch) } : {}),
    ...(left === 0n ? {} : { expiresInMs: Math.max(0, Number(left)) }),
  };
}

/** Well-formed, as a text that is no UTF-8 would end the stream of a reader written in Go. */
export function wireMessage({ type, tag, jsonB64 }: LinkMessage): WireMessage {
  return { type: type.toWellFormed(), tag: tag.toWellFormed(), jsonB64: jsonB64.toWellFormed() };
}

/** What is over already is sent with 1 ms, since 0 would mean that it never is. */
export function wireServerMessage(message: ServerMessage): WireServerMessage {
  const { expiresInMs } = message;
  return {
    ...wireMessage(message),
    epoch: message.epoch ?? 0n,
    expiresInMs: expiresInMs === undefined ? 0n : BigInt(Math.max(1, Math.round(expiresInMs))),
  };
}
