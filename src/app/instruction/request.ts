import { kindOf } from '../../domain/instruction/catalogue.js';
import type { Kind, Reading, Work } from '../../domain/instruction/kinds/kind.js';
import type { InstructionKey } from '../../domain/instruction/model.js';
import { type InstructionPolicy, judgeInstruction } from '../../domain/instruction/policy.js';
import type { Epoch, ServerMessage } from '../../domain/link/model.js';
import type { LinkSession } from '../link/link-session.js';
import { decodePayload } from './payload.js';

/** Why an instruction is not carried out. */
export interface Refusal {
  readonly rule: string;
  readonly text: string;
}

/** An instruction as it arrived, and what was made of it. */
export interface Request {
  readonly key: InstructionKey;
  readonly kind: Kind;
  readonly who: string;
  readonly epoch: Epoch | undefined;
  readonly jsonB64: string;
  /** SHA-256 in hex of type and payload, and of the payload alone. */
  readonly digest: string;
  readonly payloadDigest: string;
  /** Of the policy; as good as allowed until something else refuses. */
  readonly rule: string;
  readonly work: Work | Refusal;
  /** Wall clock, monotonic clock and boot-time clock, milliseconds. */
  readonly receivedAt: number;
  readonly receivedMonotonic: number;
  readonly receivedBootTime: number;
  /** The stream that it came on. */
  readonly session: LinkSession;
  /** Undefined when the server gave none. */
  readonly expiresInMs: number | undefined;
}

export function isRefusal(work: Work | Refusal): work is Refusal {
  return 'text' in work;
}

/** Whether it has no effect, and is therefore not journalled. */
export function isRead({ kind, work }: Request): boolean {
  return (isRefusal(work) ? kind.scheduling : work).repeat === 'read';
}

interface Context {
  readonly key: InstructionKey;
  readonly who: string;
  readonly epoch: Epoch | undefined;
  readonly policy: InstructionPolicy;
  readonly receivedAt: number;
  readonly receivedMonotonic: number;
  readonly receivedBootTime: number;
  readonly session: LinkSession;
  readonly sha256: (text: string) => string;
  readonly reading: Reading;
}

/** Undefined for a type that this version does not know. Decodes only what is built and allowed. */
export function readRequest({ type, jsonB64, expiresInMs }: ServerMessage, context: Context): Request | undefined {
  const kind = kindOf(type);
  if (kind === undefined) return undefined;
  const { key, who, epoch, receivedAt, receivedMonotonic, receivedBootTime, session, sha256 } = context;
  const payloadDigest = sha256(jsonB64);
  return {
    ...{ key, kind, who, epoch, jsonB64, payloadDigest, expiresInMs, receivedAt, receivedMonotonic, receivedBootTime, session },
    digest: sha256(`${type}\n${payloadDigest}`),
    ...readWork(kind, jsonB64, context),
  };
}

function readWork(kind: Kind, jsonB64: string, { policy, reading }: Context): Pick<Request, 'work' | 'rule'> {
  const { type } = kind;
  const byType = judgeInstruction(policy, type, undefined);
  if (!byType.allowed) return denied(byType.rule);
  if (kind.read === undefined) return refused('not_built', `NOT_BUILT: ${type} is not built yet in this version of the agent`);
  const decoded = decodePayload(jsonB64, kind);
  const read = 'problem' in decoded ? decoded : kind.read(decoded.json, reading);
  if ('problem' in read) return refused('payload', `INVALID: ${type}: ${read.problem}`);
  const verdict = judgeInstruction(policy, type, read.work.subject);
  return verdict.allowed ? { rule: verdict.rule, work: read.work } : denied(verdict.rule);
}

function denied(rule: string): Pick<Request, 'work' | 'rule'> {
  return refused(rule, `DENIED: this node's policy does not allow it: ${rule}`);
}

function refused(rule: string, text: string): Pick<Request, 'work' | 'rule'> {
  return { rule, work: { rule, text } };
}
