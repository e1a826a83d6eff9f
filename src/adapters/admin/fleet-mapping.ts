import { formatHead } from '../../domain/audit/head.js';
import { DEFAULT_EXPIRY_MS, type InstructionState } from '../../domain/dispatch/model.js';
import { tag as asTag, type Tag } from '../../domain/instruction/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { type Aid, aid as asAid, nid as asNid, type Nid } from '../../domain/link/model.js';
import type { FleetNode, InstructionStatus, SendCall } from '../../ports/driving/fleet.js';
import type { TokenFacts } from '../../ports/driving/tokens.js';
import type { FleetVip } from '../../ports/driving/vips.js';
import * as wire from '../generated/holdfast/admin/v1/fleet.js';

const states: Readonly<Record<InstructionState, wire.InstructionState>> = {
  pending: wire.InstructionState.PENDING,
  claimed: wire.InstructionState.CLAIMED,
  delivered: wire.InstructionState.DELIVERED,
  done: wire.InstructionState.DONE,
  unknown: wire.InstructionState.UNKNOWN,
  expired: wire.InstructionState.EXPIRED,
  cancelled: wire.InstructionState.CANCELLED,
};

/** @throws AgentError `dispatch.invalid` */
export function nidFromWire(text: string): Nid {
  return named(() => asNid(text));
}

/** @throws AgentError `dispatch.invalid` */
export function aidFromWire(text: string): Aid {
  return named(() => asAid(text));
}

/** @throws AgentError `dispatch.invalid` */
export function tagFromWire(text: string): Tag {
  const tag = asTag(text);
  if (tag !== undefined) return tag;
  throw new AgentError('dispatch.invalid', { problem: `a tag has 1 to 128 printable characters, not ${JSON.stringify(text)}` });
}

/** As we write it, of `5E:01` too, which other tools show. @throws AgentError `dispatch.invalid` */
export function serialFromWire(text: string): string {
  const serial = text.replaceAll(':', '').toLowerCase();
  if (/^[0-9a-f]{1,40}$/.test(serial)) return serial;
  throw new AgentError('dispatch.invalid', { problem: `a serial has up to 40 hex digits, not ${JSON.stringify(text)}` });
}

/** @throws AgentError `dispatch.invalid` */
export function sendFromWire({ node, type, json, tag, expiresMs }: wire.SendRequest, by: string): SendCall {
  return {
    ...{ nid: nidFromWire(node), type, json, by },
    tag: tag === '' ? undefined : tagFromWire(tag),
    expiresMs: expiresMs === 0n ? DEFAULT_EXPIRY_MS : Number(expiresMs),
  };
}

export function instructionToWire(status: InstructionStatus): wire.Instruction {
  const { nid, tag, type, state, by, issuedAt, expiresAt, deliveredAt, finishedAt, waitsFor, reason, replyType, replyBytes } =
    status;
  return {
    ...{ node: nid, tag, type, state: states[state], sentBy: by, waitsFor, reason },
    issuedAtMs: milliseconds(issuedAt),
    expiresAtMs: milliseconds(expiresAt),
    deliveredAtMs: milliseconds(deliveredAt),
    finishedAtMs: milliseconds(finishedAt),
    replyType: replyType ?? '',
    replyBytes: BigInt(replyBytes),
  };
}

export function nodeToWire({
  nid,
  aid,
  registeredAt,
  lastSeen,
  registration: _,
  auditHead,
  info,
  ...node
}: FleetNode): wire.Node {
  return {
    ...{ ...node, node: nid, account: aid },
    infoJson: info === undefined ? '' : JSON.stringify(info),
    registeredAtMs: milliseconds(registeredAt),
    lastSeenMs: milliseconds(lastSeen),
    auditHead: auditHead === undefined ? '' : formatHead(auditHead),
  };
}

export function tokenToWire({ id, aid, replace, createdAt, expiresAt, usedBy }: TokenFacts): wire.TokenFacts {
  return {
    ...{ id, account: aid, replace: replace ?? '', usedBy: usedBy ?? '' },
    createdAtMs: milliseconds(createdAt),
    expiresAtMs: milliseconds(expiresAt),
  };
}

export function vipToWire({ aid, since, candidates, ...vip }: FleetVip): wire.Vip {
  return { ...vip, account: aid, sinceMs: milliseconds(since), candidates: [...candidates] };
}

function milliseconds(time: number | undefined): bigint {
  return BigInt(Math.round(time ?? 0));
}

function named<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    throw new AgentError('dispatch.invalid', { problem }, { cause: error });
  }
}
