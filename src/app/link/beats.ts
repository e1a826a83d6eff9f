import type { AuditHead } from '../../domain/audit/model.js';
import { HEARTBEAT_TYPE, type LinkMessage } from '../../domain/link/model.js';

/** `{"isHealthy":true,"message":""}`: an agent that is answered at all is one that is known. */
const HEALTHY = Buffer.from(JSON.stringify({ isHealthy: true, message: '' })).toString('base64');
/** A beat is some hundred bytes. */
const MAX_BEAT_BYTES = 64 * 1024;
const MAX_TEXT = 256;

export function beatAnswer(tag: string): LinkMessage {
  return { type: HEARTBEAT_TYPE, tag, jsonB64: HEALTHY };
}

/** What the control plane keeps of a beat. */
export interface Beat {
  readonly status: string;
  readonly version: string;
  readonly auditHead: AuditHead | undefined;
}

/** Undefined for one that cannot be read; what is absent in it is empty. */
export function readBeat(jsonB64: string): Beat | undefined {
  if (jsonB64.length > MAX_BEAT_BYTES) return undefined;
  try {
    const beat: unknown = JSON.parse(Buffer.from(jsonB64, 'base64').toString());
    if (typeof beat !== 'object' || beat === null) return undefined;
    const { status, version, auditHead }: { status?: unknown; version?: unknown; auditHead?: unknown } = beat;
    return { status: text(status), version: text(version), auditHead: head(auditHead) };
  } catch {
    return undefined;
  }
}

function head(value: unknown): AuditHead | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { sequence, digest }: { sequence?: unknown; digest?: unknown } = value;
  const number = typeof sequence === 'number' || typeof sequence === 'string' ? String(sequence) : '';
  if (!/^\d{1,18}$/.test(number) || typeof digest !== 'string' || !/^[0-9a-f]{64}$/.test(digest)) return undefined;
  return { sequence: BigInt(number), digest };
}

function text(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, MAX_TEXT).toWellFormed() : '';
}
