import type { AdminCaller } from '../../domain/admin/model.js';
import { type EtcdMember, formatMemberId, memberId, peerUrl } from '../../domain/etcd/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { AuditLog } from '../../ports/audit/audit-log.js';
import type { ApiBalancer, BalancerStatus } from '../../ports/driving/api-balancer.js';
import type { EtcdMembership } from '../../ports/driving/etcd-membership.js';
import type { InstructionMemory, InstructionSnapshot, InstructionView } from '../../ports/driving/instruction-memory.js';
import type { OverlaySync } from '../../ports/driving/overlay-sync.js';
import type { Resync, ResyncOutcome } from '../../ports/driving/resync.js';
import type { Logger } from '../../ports/logger.js';
import type * as wire from '../generated/holdfast/admin/v1/node.js';
import { Audited } from './audited.js';
import type { GrpcCalls } from './grpc-calls.js';

export interface NodeParts {
  readonly resync: Resync;
  readonly memory: InstructionMemory;
  readonly overlay: OverlaySync;
  readonly etcd: EtcdMembership;
  readonly apiBalancer: ApiBalancer;
  /** Every call that changes something is in it. */
  readonly audit: AuditLog;
  readonly logger: Logger;
}

/** A control plane that is there answers in seconds; a node without one is told of within this. */
const USUAL_WAIT_MS = 30_000;
/** Below what the caller waits for an answer of any kind. */
const LONGEST_WAIT_MS = 110_000;

export function nodeHandlers(
  calls: GrpcCalls,
  { resync, memory, overlay, etcd, apiBalancer, audit, logger }: NodeParts,
): wire.NodeServiceServer {
  const audited = new Audited(audit, logger);
  return {
    resync: calls.unary(async ({ accept, timeoutMs }, signal, caller) => {
      const waitMs = timeoutMs === 0n ? USUAL_WAIT_MS : Math.min(LONGEST_WAIT_MS, Number(timeoutMs));
      const record = { caller, type: 'admin.resync', tag: accept ? 'accept' : 'guarded', payload: '' };
      const outcome = await audited.run(record, { signal }, () => resyncWithin(resync, { accept, waitMs }, signal));
      return outcome.outcome === 'applied'
        ? { revision: outcome.revision, heldReason: '' }
        : { revision: 0n, heldReason: outcome.reason };
    }),
    listJournal: calls.unary(async () => journalToWire(memory.snapshot())),
    syncOverlay: calls.unary(async (_request, signal, caller) => {
      const record = { caller, type: 'admin.sync', tag: 'vpn', payload: '' };
      const { failed, ...synced } = await audited.run(record, { signal }, () => overlay.sync({ signal }));
      return { ...synced, failed: failed.map((one) => ({ ...one })) };
    }),
    getApiBalancer: calls.unary(async () => ({ balancer: balancerToWire(apiBalancer.status()) })),
    refreshApiBalancer: calls.unary(async (_request, signal, caller) => {
      const record = { caller, type: 'admin.refresh', tag: 'kubeproxy', payload: '' };
      return { balancer: balancerToWire(await audited.run(record, { signal }, () => apiBalancer.refresh({ signal }))) };
    }),
    ...etcdHandlers(calls, etcd, audited),
  };
}

type EtcdCall = 'listEtcdMembers' | 'removeEtcdMember' | 'addEtcdMember' | 'promoteEtcdMember';

function etcdHandlers(calls: GrpcCalls, etcd: EtcdMembership, audited: Audited): Pick<wire.NodeServiceServer, EtcdCall> {
  const record = (caller: AdminCaller, what: string, tag: string) => ({ caller, type: `admin.etcd_${what}`, tag, payload: '' });
  return {
    listEtcdMembers: calls.unary(async (_, signal) => ({ members: (await etcd.list({ signal })).map(memberToWire) })),
    removeEtcdMember: calls.unary(async ({ id }, signal, caller) => {
      const member = memberId(id);
      await audited.run(record(caller, 'remove', formatMemberId(member)), { signal }, () => etcd.remove(member, { signal }));
      return {};
    }),
    addEtcdMember: calls.unary(async ({ peerUrl: text }, signal, caller) => {
      const url = peerUrl(text);
      if (url === undefined)
        throw new AgentError('etcd.refused', { problem: `${text} is no peer URL, as https://10.0.0.4:2380` });
      return audited.run(record(caller, 'add', url), { signal }, () => etcd.add(url, { signal }));
    }),
    promoteEtcdMember: calls.unary(async ({ id }, signal, caller) => {
      const member = memberId(id);
      await audited.run(record(caller, 'promote', formatMemberId(member)), { signal }, () => etcd.promote(member, { signal }));
      return {};
    }),
  };
}

function memberToWire({ peerUrls, clientUrls, problem, ...member }: EtcdMember): wire.EtcdMember {
  return { ...member, peerUrls: [...peerUrls], clientUrls: [...clientUrls], problem: problem ?? '' };
}

function balancerToWire({ servers, ...status }: BalancerStatus): wire.ApiBalancer {
  return { ...status, servers: servers.map((server) => ({ ...server })) };
}

/** @throws AgentError `admin.waited` */
async function resyncWithin(
  resync: Resync,
  { accept, waitMs }: { readonly accept: boolean; readonly waitMs: number },
  signal: AbortSignal,
): Promise<ResyncOutcome> {
  const timer = AbortSignal.timeout(waitMs);
  try {
    return await resync.resync({ accept }, { signal: AbortSignal.any([signal, timer]) });
  } catch (error) {
    if (!timer.aborted || signal.aborted) throw error;
    const problem = `the control plane gave no state within ${waitMs / 1_000} s`;
    throw new AgentError('admin.waited', { problem }, { cause: error });
  }
}

function journalToWire({ journal, instructions, counts, ...numbers }: InstructionSnapshot): wire.ListJournalResponse {
  return {
    ...numbers,
    journalId: journal?.id ?? '',
    journalCounter: journal?.counter ?? 0n,
    counts: Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, BigInt(count)])),
    instructions: instructions.map(instructionToWire),
  };
}

function instructionToWire({ outcome, receivedAt, finishedAt, waitsFor, ...view }: InstructionView): wire.JournalledInstruction {
  return {
    ...view,
    outcome: outcome ?? '',
    receivedAtMs: BigInt(Math.round(receivedAt)),
    finishedAtMs: BigInt(Math.round(finishedAt ?? 0)),
    waitsFor: waitsFor ?? '',
  };
}
