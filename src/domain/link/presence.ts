import type { AuditHead } from '../audit/model.js';
import type { Aid, Nid, RegistrationId } from './model.js';

/** A server that has said nothing for so long is taken for dead (engine.md E12). */
export const SERVER_SILENCE_MS = 15_000;
/** A node is offline after so much silence, or after so long without any server that has it. */
export const NODE_SILENCE_MS = 30_000;
/** A server of which nothing was heard for so long has ended; its nodes are offline by then. */
export const SERVER_END_MS = 60_000;

export const presencePrefix = 'presence/node/';
export const presenceKey = (nid: Nid) => `${presencePrefix}${nid}`;
export const serverPrefix = 'presence/server/';
export const serverKey = (server: string) => `${serverPrefix}${server}`;

/** What a node has last said, and to whom: one value a node, never part of the ordered log (engine.md E11). */
export interface Presence {
  readonly nid: Nid;
  readonly registration: RegistrationId;
  /** The replica that has or had its stream. */
  readonly server: string;
  readonly connected: boolean;
  /** Wall clock, milliseconds: when the stream was opened, or ended. */
  readonly since: number;
  readonly lastSeen: number;
  readonly address: string;
  /** `ready`, `not_ready` …; empty until the first beat. */
  readonly status: string;
  readonly version: string;
  /** Greatest that it has said (engine.md H2). */
  readonly auditHead: AuditHead | undefined;
  /** Empty, or what is wrong with it as a whole: two machines that call themselves this node. */
  readonly problem: string;
  /** Of one that says it is a control plane of Kubernetes: its account, and the address that it says it has. */
  readonly controlPlane?: { readonly aid: Aid; readonly address: string } | undefined;
}

/** What a server writes each 5 s: its wall clock. */
export function encodeServerClock(now: number): string {
  return JSON.stringify({ at: now });
}

/** Of what `encodeServerClock` made. */
export function decodeServerClock(text: string): number {
  return (JSON.parse(text) as { readonly at: number }).at;
}

export type NodeState = 'online' | 'offline' | 'unknown';

/** How long nothing was heard, milliseconds on a clock that never goes back. */
export interface Silence {
  readonly nodeMs: number;
  /** Of the server that has the node; 0 for the one that asks. */
  readonly serverMs: number;
}

/** `unknown`: its server is dead, and another may have it already. */
export function nodeState(silence: Silence): NodeState {
  const orphanedMs = silence.serverMs - SERVER_SILENCE_MS;
  if (orphanedMs > NODE_SILENCE_MS) return 'offline';
  if (orphanedMs > 0) return 'unknown';
  return silence.nodeMs > NODE_SILENCE_MS ? 'offline' : 'online';
}

/** Of a node that nobody has spoken of since the server began that is asked: it had no time yet to come back. */
export function unheardState(sinceStartMs: number): NodeState {
  return sinceStartMs > NODE_SILENCE_MS ? 'offline' : 'unknown';
}

/** Which of two heads is kept, and whether the newer one shows that the log's end was cut or written anew. */
export function judgeHead(kept: AuditHead | undefined, said: AuditHead): { readonly head: AuditHead; readonly isCut: boolean } {
  if (kept === undefined || said.sequence > kept.sequence) return { head: said, isCut: false };
  return { head: kept, isCut: said.sequence < kept.sequence || said.digest !== kept.digest };
}

export function encodePresence({ auditHead, ...rest }: Presence): string {
  const head = auditHead && { sequence: String(auditHead.sequence), digest: auditHead.digest };
  return JSON.stringify({ ...rest, auditHead: head });
}

/** Of what `encodePresence` made. */
export function decodePresence(text: string): Presence {
  const stored = JSON.parse(text) as Stored;
  const { auditHead } = stored;
  return {
    ...stored,
    auditHead: auditHead && { sequence: BigInt(auditHead.sequence), digest: auditHead.digest },
  };
}

type Stored = Omit<Presence, 'auditHead'> & { readonly auditHead?: { readonly sequence: string; readonly digest: string } };
