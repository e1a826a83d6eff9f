import type { AuditHead } from '../audit/model.js';
import {
  type Capabilities,
  type Capability,
  HEARTBEAT_TYPE,
  capabilities as knownCapabilities,
  type LinkMessage,
} from './model.js';
import { payloadOf, readPayload, SMALL_PAYLOAD_BYTES } from './payload.js';
import { isNodeState, type NodeState } from './roles.js';

/** What a node says every 5 s. */
export interface Heartbeat {
  readonly externalIpAddress: string;
  readonly isCp: boolean;
  readonly isWorker: boolean;
  readonly status: NodeState;
  readonly version: string;
  /** False: the roles are those last read, carried over. */
  readonly rolesKnown: boolean;
  readonly capabilities: Capabilities;
  /** Undefined for a node that keeps no audit log. */
  readonly auditHead: AuditHead | undefined;
}

const vipWords = ['holder', 'other', 'unknown'] as const;
/** Whether the node has the virtual IP, as far as the server knows at this moment. */
export type VipWord = (typeof vipWords)[number];

export interface HeartbeatAnswer {
  readonly isHealthy: boolean;
  readonly message: string;
  /** Undefined for a server that does not say it: being answered is enough for a holder to go on. */
  readonly vip?: VipWord | undefined;
}

export function heartbeatMessage(beat: Heartbeat, tag: string): LinkMessage {
  const { auditHead, capabilities, ...rest } = beat;
  const head = auditHead === undefined ? undefined : { sequence: Number(auditHead.sequence), digest: auditHead.digest };
  return { type: HEARTBEAT_TYPE, tag, jsonB64: payloadOf({ ...rest, capabilities: [...capabilities], auditHead: head }) };
}

/** Undefined when it is no JSON object; what is absent or of another type in it has its zero, and `rolesKnown` reads as true. */
export function readHeartbeat(jsonB64: string): Heartbeat | undefined {
  const fields = readObject(jsonB64);
  if (fields === undefined) return undefined;
  const names = Array.isArray(fields.capabilities) ? fields.capabilities : [];
  const { status } = fields;
  return {
    externalIpAddress: text(fields.externalIpAddress),
    isCp: fields.isCp === true,
    isWorker: fields.isWorker === true,
    status: isNodeState(status) ? status : 'unknown',
    version: text(fields.version),
    rolesKnown: fields.rolesKnown !== false,
    capabilities: new Set(names.filter(isCapability)),
    auditHead: readHead(fields.auditHead),
  };
}

export function heartbeatAnswer(answer: HeartbeatAnswer, tag: string): LinkMessage {
  return { type: HEARTBEAT_TYPE, tag, jsonB64: payloadOf(answer) };
}

/** As `readHeartbeat`. Which type it comes under says nothing: answers are known by their tag. */
export function readHeartbeatAnswer(jsonB64: string): HeartbeatAnswer | undefined {
  const fields = readObject(jsonB64);
  if (fields === undefined) return undefined;
  const vip = vipWords.find((word) => word === fields.vip);
  return { isHealthy: fields.isHealthy === true, message: text(fields.message), ...(vip === undefined ? {} : { vip }) };
}

function readHead(value: unknown): AuditHead | undefined {
  if (!isObject(value)) return undefined;
  const { sequence, digest } = value;
  if (typeof sequence !== 'number' || !Number.isSafeInteger(sequence) || sequence < 0) return undefined;
  return typeof digest === 'string' && /^[0-9a-f]{64}$/.test(digest) ? { sequence: BigInt(sequence), digest } : undefined;
}

function readObject(jsonB64: string): Readonly<Record<string, unknown>> | undefined {
  const payload = readPayload(jsonB64, SMALL_PAYLOAD_BYTES);
  return payload.ok && isObject(payload.value) ? payload.value : undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCapability(name: unknown): name is Capability {
  return knownCapabilities.some((known) => known === name);
}

function text(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, 1_024) : '';
}
