import type { Brand } from '../kernel/brand.js';

/** A node's id in the control plane: the common name of its certificate. */
export type Nid = Brand<string, 'Nid'>;
/** An account: the organisation in the certificates of its nodes. */
export type Aid = Brand<string, 'Aid'>;
/** Drawn at each registration and part of the certificate: a node that registers again is another registration. */
export type RegistrationId = Brand<string, 'RegistrationId'>;
/** Of one registration's streams: 1, 2, 3 …; the stream with the highest is the current one. */
export type Epoch = Brand<bigint, 'Epoch'>;

/** @throws RangeError when `text` is not 1 to 63 of a-z, A-Z, 0-9, `.`, `_` and `-`, beginning with a letter or digit. */
export function nid(text: string): Nid {
  if (!isName(text)) throw new RangeError(`not a node id: ${JSON.stringify(text)}`);
  return text as Nid;
}

/** @throws RangeError as `nid` does. */
export function aid(text: string): Aid {
  if (!isName(text)) throw new RangeError(`not an account id: ${JSON.stringify(text)}`);
  return text as Aid;
}

/** @throws RangeError as `nid` does. */
export function registrationId(text: string): RegistrationId {
  if (!isName(text)) throw new RangeError(`not a registration id: ${JSON.stringify(text)}`);
  return text as RegistrationId;
}

/** @throws RangeError when `value` is negative. */
export function epoch(value: bigint): Epoch {
  if (value < 0n) throw new RangeError(`not an epoch: ${value}`);
  return value as Epoch;
}

function isName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(text);
}

/** What one side can do beyond the base protocol; said in metadata and headers of the stream, unknown ones are ignored. */
export const capabilities = [
  'journal',
  'redeliver',
  'result-ack',
  'result-upload',
  'live-output',
  'cancel',
  'update-agent',
  'keepalive',
  'window',
] as const;
export type Capability = (typeof capabilities)[number];
export type Capabilities = ReadonlySet<Capability>;

/** Which journal an agent keeps, and how many commits it has seen: a server that has seen more knows that a memory is gone (A12). */
export interface JournalFacts {
  /** 1 to 128 printable characters without a colon. */
  readonly id: string;
  readonly counter: bigint;
}

/** Of an agent that has none open. */
export const NO_JOURNAL: JournalFacts = { id: 'none', counter: 0n };

export function isJournalId(text: string): boolean {
  return /^[\x21-\x39\x3b-\x7e]{1,128}$/.test(text);
}

/** What an agent says of itself when it opens a stream (gRPC request metadata `holdfast-*`). An older agent says nothing. */
export interface AgentFacts {
  /** Random, one per process. */
  readonly instance: string;
  /** Counted per process from 1: of two streams of one instance the higher is the newer. */
  readonly session: number;
  /** Boot id of the kernel. */
  readonly boot: string;
  /** Hash of what identifies the hardware. */
  readonly hardware: string;
  readonly journal: JournalFacts;
  readonly capabilities: Capabilities;
}

/** What a process of a node says of itself beside its stream. */
export type CallerFacts = Pick<AgentFacts, 'instance' | 'boot' | 'hardware'>;

/** What a server says at once when a stream opens (gRPC response headers `holdfast-*`). An older server says nothing. */
export interface ServerFacts {
  /** Id of the fleet; the same at all its addresses. */
  readonly fleet: string;
  /** Id of the replica. */
  readonly server: string;
  readonly epoch: Epoch;
  readonly capabilities: Capabilities;
  /** Over which time reconnects are to be spread when the connection dies, milliseconds. */
  readonly spreadMs: number;
  /** Unanswered instructions that the server lets a node have. */
  readonly window: number;
}

/** One message of `NodeAgentStream`, either way. `jsonB64` as it stands on the wire. */
export interface LinkMessage {
  readonly type: string;
  readonly tag: string;
  readonly jsonB64: string;
}

/** From the server; the additions are left out where the server does not send them. */
export interface ServerMessage extends LinkMessage {
  readonly epoch?: Epoch | undefined;
  /** How long the instruction may still be started, milliseconds, counted from the receipt on the boot-time clock. */
  readonly expiresInMs?: number | undefined;
}

/** Sent and accepted: what a node says every 5 s. */
export const HEARTBEAT_TYPE = 'NodeAgentHeartbeatToServer';
export const HEARTBEAT_MS = 5_000;
/** No byte for so long with a beat outstanding ends the connection. */
export const LIVENESS_MS = 12_000;

/** Largest encoded message that is sent; both sides receive up to 16 MiB. */
export const MAX_SENT_BYTES = 12 * 1024 * 1024;
export const MAX_RECEIVED_BYTES = 16 * 1024 * 1024;

/** Of `jsonB64` for an empty success: base64 of `{}`. */
export const EMPTY_JSON_B64 = 'e30=';
