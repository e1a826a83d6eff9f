import { decodeBase64, decodedLength } from '../link/base64.js';
import { EMPTY_JSON_B64, type LinkMessage } from '../link/model.js';
import { payloadOf, readPayload, SMALL_PAYLOAD_BYTES } from '../link/payload.js';
import { MAX_INPUT_BYTES, type SessionEnd, type SessionId, type SessionTarget, type TerminalSize } from './model.js';
import { type ReadTarget, readSize, readTarget } from './schema.js';

export const OPEN_STREAM = 'OPEN_STREAM';

/** What a server says of a session. */
export type ServerFrame =
  | { readonly frame: 'open'; readonly read: ReadTarget }
  /** Undefined: no base64, or more than one frame may hold. */
  | { readonly frame: 'data'; readonly bytes: Uint8Array | undefined }
  | { readonly frame: 'resize'; readonly size: TerminalSize | undefined }
  | { readonly frame: 'close' };

/** Undefined when it is none of a session's. */
export function serverFrame({ type, jsonB64 }: LinkMessage): ServerFrame | undefined {
  switch (type) {
    case OPEN_STREAM:
      return { frame: 'open', read: targetOf(jsonB64) };
    case 'STREAM_DATA':
      return { frame: 'data', bytes: bytesOf(jsonB64, MAX_INPUT_BYTES) };
    case 'STREAM_RESIZE': {
      const payload = readPayload(jsonB64, SMALL_PAYLOAD_BYTES);
      return { frame: 'resize', size: payload.ok ? readSize(payload.value) : undefined };
    }
    case 'STREAM_CLOSE':
      return { frame: 'close' };
    default:
      return undefined;
  }
}

function targetOf(jsonB64: string): ReadTarget {
  const payload = readPayload(jsonB64, SMALL_PAYLOAD_BYTES);
  return payload.ok ? readTarget(payload.value) : payload;
}

/** What a node says of a session. */
export type NodeFrame =
  | { readonly frame: 'opened' }
  | { readonly frame: 'data'; readonly bytes: Uint8Array | undefined }
  | { readonly frame: 'closed'; readonly end: SessionEnd };

/** Frames of agents are at most 16 KiB; others may cut them elsewhere. */
const MAX_OUTPUT_BYTES = 4 * 1024 * 1024;

/** Undefined when it is none of a session's. An agent without sessions answers `ERROR` with its text, which ends one as well. */
export function nodeFrame({ type, jsonB64 }: LinkMessage): NodeFrame | undefined {
  switch (type) {
    case 'STREAM_OPENED':
      return { frame: 'opened' };
    case 'STREAM_DATA':
      return { frame: 'data', bytes: bytesOf(jsonB64, MAX_OUTPUT_BYTES) };
    case 'STREAM_CLOSED':
      return { frame: 'closed', end: endOf(jsonB64) };
    case 'ERROR':
      return { frame: 'closed', end: { reason: jsonB64.slice(0, 4_096), error: true } };
    default:
      return undefined;
  }
}

/** An end that does not say whether it is a failure is none. */
function endOf(jsonB64: string): SessionEnd {
  const payload = readPayload(jsonB64, SMALL_PAYLOAD_BYTES);
  const value = payload.ok ? payload.value : undefined;
  if (typeof value !== 'object' || value === null) return { reason: '', error: false };
  const reason = 'reason' in value && typeof value.reason === 'string' ? value.reason : '';
  return { reason, error: 'error' in value && value.error === true };
}

function bytesOf(base64: string, most: number): Uint8Array | undefined {
  const length = decodedLength(base64);
  return length === undefined || length > most ? undefined : decodeBase64(base64);
}

export function openFrame(tag: SessionId, { subprotocols, headers, size, ...target }: SessionTarget): LinkMessage {
  const all = subprotocols.length === 0 ? headers : { ...headers, 'Sec-WebSocket-Protocol': subprotocols.join(', ') };
  const value = { target: 'SERVICE_WEBSOCKET', ...target, headers: all, cols: size?.cols ?? 0, rows: size?.rows ?? 0 };
  return { type: OPEN_STREAM, tag, jsonB64: payloadOf(value) };
}

export function openedFrame(tag: SessionId): LinkMessage {
  return { type: 'STREAM_OPENED', tag, jsonB64: EMPTY_JSON_B64 };
}

/** @param base64 of the bytes */
export function dataFrame(tag: SessionId, base64: string): LinkMessage {
  return { type: 'STREAM_DATA', tag, jsonB64: base64 };
}

export function resizeFrame(tag: SessionId, { cols, rows }: TerminalSize): LinkMessage {
  return { type: 'STREAM_RESIZE', tag, jsonB64: payloadOf({ cols, rows }) };
}

export function closeFrame(tag: SessionId): LinkMessage {
  return { type: 'STREAM_CLOSE', tag, jsonB64: EMPTY_JSON_B64 };
}

export function closedFrame(tag: SessionId, { reason, error }: SessionEnd): LinkMessage {
  return { type: 'STREAM_CLOSED', tag, jsonB64: payloadOf({ reason: reason.toWellFormed(), error }) };
}
