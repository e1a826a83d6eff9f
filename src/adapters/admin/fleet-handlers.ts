import { mayInstruct, suffices } from '../../domain/admin/roles.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Aid } from '../../domain/link/model.js';
import type { AuditLog } from '../../ports/audit/audit-log.js';
import type { AdminCertificates } from '../../ports/driving/admin-certificates.js';
import type { Backups } from '../../ports/driving/backups.js';
import type { FleetNodes, Instructions } from '../../ports/driving/fleet.js';
import type { RemoteSessions } from '../../ports/driving/remote-sessions.js';
import type { Tokens } from '../../ports/driving/tokens.js';
import type { Vips } from '../../ports/driving/vips.js';
import type { Logger } from '../../ports/logger.js';
import type { FleetServiceServer } from '../generated/holdfast/admin/v1/fleet.js';
import type { Audited, AuditedCall } from './audited.js';
import {
  aidFromWire,
  instructionToWire,
  nidFromWire,
  nodeToWire,
  sendFromWire,
  serialFromWire,
  tagFromWire,
  tokenToWire,
  vipToWire,
} from './fleet-mapping.js';
import type { GrpcCalls } from './grpc-calls.js';
import { sessionHandler } from './session-handler.js';

export interface FleetParts {
  readonly instructions: Instructions;
  readonly nodes: FleetNodes;
  readonly tokens: Tokens;
  readonly certificates: AdminCertificates;
  readonly backups: Backups;
  readonly sessions: RemoteSessions;
  readonly vips: Vips;
  /** Every call that changes something is in it. */
  readonly audit: AuditLog;
  readonly logger: Logger;
  /** Of the nodes that are enrolled without naming one. */
  readonly account: Aid;
}

type Handlers<Name extends keyof FleetServiceServer> = Pick<FleetServiceServer, Name>;

export function fleetHandlers(calls: GrpcCalls, parts: FleetParts, audited: Audited): FleetServiceServer {
  return {
    ...readingHandlers(calls, parts),
    ...instructionHandlers(calls, parts, audited),
    ...nodeHandlers(calls, parts, audited),
    ...tokenHandlers(calls, parts, audited),
    ...backupHandlers(calls, parts, audited),
    ...vipHandlers(calls, parts, audited),
    openSession: sessionHandler(calls, parts, audited),
  };
}

function readingHandlers(
  calls: GrpcCalls,
  { instructions, nodes, tokens }: FleetParts,
): Handlers<'listInstructions' | 'getInstruction' | 'watchInstructions' | 'listNodes' | 'listTokens'> {
  const filterOf = (node: string, tag: string) => ({
    nid: node === '' ? undefined : nidFromWire(node),
    tag: tag === '' ? undefined : tagFromWire(tag),
  });
  return {
    listInstructions: calls.unary(async ({ node }, signal) => {
      const found = await instructions.list(filterOf(node, ''), { signal });
      return { instructions: found.map(instructionToWire) };
    }),
    getInstruction: calls.unary(async ({ node, tag }, signal, { grade }) => {
      const { status, reply } = await instructions.get(nidFromWire(node), tagFromWire(tag), { signal });
      const replyWithheld = reply !== undefined && !suffices(grade, 'operator');
      return { instruction: instructionToWire(status), replyJsonB64: replyWithheld ? '' : (reply?.jsonB64 ?? ''), replyWithheld };
    }),
    watchInstructions: calls.streaming(async function* ({ node, tag }, signal) {
      for await (const status of instructions.watch(filterOf(node, tag), { signal })) {
        yield { instruction: instructionToWire(status) };
      }
    }),
    listNodes: calls.unary(async (_, signal) => ({ nodes: (await nodes.list({ signal })).map(nodeToWire) })),
    listTokens: calls.unary(async (_, signal) => ({ tokens: (await tokens.list({ signal })).map(tokenToWire) })),
  };
}

function instructionHandlers(
  calls: GrpcCalls,
  { instructions }: FleetParts,
  audited: Audited,
): Handlers<'send' | 'cancelInstruction'> {
  return {
    send: calls.unary(async (request, signal, caller) => {
      const call = sendFromWire(request, caller.name);
      const record = { caller, type: `admin.send ${call.type}`, tag: call.tag ?? call.nid, payload: call.json };
      await mustInstruct(audited, record, call.type);
      const status = await audited.run(record, { signal }, () => instructions.send(call, { signal }));
      return { instruction: instructionToWire(status) };
    }),
    cancelInstruction: calls.unary(async (request, signal, caller) => {
      const [node, tag] = [nidFromWire(request.node), tagFromWire(request.tag)];
      const record = { caller, type: 'admin.cancel', tag, payload: node };
      // Of one that is not there nobody learns more than that.
      const [found] = await instructions.list({ nid: node, tag }, { signal });
      if (found !== undefined) await mustInstruct(audited, record, found.type);
      const status = await audited.run(record, { signal }, () => instructions.cancel(node, tag, { signal }));
      return { instruction: instructionToWire(status) };
    }),
  };
}

function nodeHandlers(
  calls: GrpcCalls,
  { nodes }: FleetParts,
  audited: Audited,
): Handlers<'cordonNode' | 'removeNode' | 'revokeCertificate'> {
  return {
    cordonNode: calls.unary(async ({ node, cordoned }, signal, caller) => {
      const nid = nidFromWire(node);
      const record = { caller, type: cordoned ? 'admin.cordon' : 'admin.uncordon', tag: nid, payload: '' };
      await audited.run(record, { signal }, () => nodes.cordon(nid, cordoned, { signal }));
      return {};
    }),
    removeNode: calls.unary(async ({ node }, signal, caller) => {
      const nid = nidFromWire(node);
      const record = { caller, type: 'admin.remove_node', tag: nid, payload: '' };
      await audited.run(record, { signal }, () => nodes.remove(nid, { signal }));
      return {};
    }),
    revokeCertificate: calls.unary(async ({ serial: text, reason }, signal, caller) => {
      const serial = serialFromWire(text);
      const record = { caller, type: 'admin.revoke_certificate', tag: serial, payload: reason };
      const why = reason === '' ? 'an operator has revoked it' : reason;
      await audited.run(record, { signal }, () => nodes.revokeCertificate(serial, why, { signal }));
      return {};
    }),
  };
}

/** @throws AgentError `admin.not_allowed`, when somebody of this role may not make nodes do such a thing */
async function mustInstruct(audited: Audited, call: AuditedCall, type: string): Promise<void> {
  if (mayInstruct(call.caller.grade, type)) return;
  const problem = `${call.caller.name} has the role ${call.caller.grade}; instructions of type ${type} are for the role admin`;
  await audited.denied(call, 'role');
  throw new AgentError('admin.not_allowed', { problem });
}

/** Who takes one away is on record before the first byte leaves. */
function backupHandlers(calls: GrpcCalls, { backups }: FleetParts, audited: Audited): Handlers<'backup'> {
  return {
    backup: calls.streaming(async function* ({ withKey }, signal, caller) {
      const record = { caller, type: 'admin.backup', tag: withKey ? 'with key' : 'without key', payload: '' };
      await audited.run(record, { signal }, async () => {});
      for await (const piece of backups.take({ withKey }, { signal })) yield { piece: Buffer.from(piece) };
    }),
  };
}

function vipHandlers(calls: GrpcCalls, { vips }: FleetParts, audited: Audited): Handlers<'listVips' | 'moveVip'> {
  return {
    listVips: calls.unary(async (_, signal) => ({ vips: (await vips.list({ signal })).map(vipToWire) })),
    moveVip: calls.unary(async ({ node }, signal, caller) => {
      const nid = nidFromWire(node);
      const record = { caller, type: 'admin.move_vip', tag: nid, payload: '' };
      return { vip: vipToWire(await audited.run(record, { signal }, () => vips.move(nid, { signal }))) };
    }),
  };
}

function tokenHandlers(
  calls: GrpcCalls,
  { tokens, account: usual }: FleetParts,
  audited: Audited,
): Handlers<'createToken' | 'revokeToken'> {
  return {
    createToken: calls.unary(async ({ account, ttlMs, replace }, signal, caller) => {
      const aid = account === '' ? usual : aidFromWire(account);
      const call = { aid, ttlMs: Number(ttlMs), replace: replace === '' ? undefined : nidFromWire(replace) };
      const record = { caller, type: 'admin.create_token', tag: replace === '' ? aid : replace, payload: '' };
      const { token, facts } = await audited.run(record, { signal }, () => tokens.create(call, { signal }));
      return { token, facts: tokenToWire(facts) };
    }),
    revokeToken: calls.unary(async ({ id }, signal, caller) => {
      const record = { caller, type: 'admin.revoke_token', tag: id, payload: '' };
      const wasThere = await audited.run(record, { signal }, () => tokens.revoke(id, { signal }));
      if (!wasThere) throw new AgentError('fleet.unknown_token', { problem: `there is no token ${id}` });
      return {};
    }),
  };
}
