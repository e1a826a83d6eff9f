import { AgentError } from '../../domain/kernel/errors.js';
import type { AuditLog } from '../../ports/audit/audit-log.js';
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
  /** Every call that changes something is in it. */
  readonly audit: AuditLog;
  readonly logger: Logger;
}

/** A control plane that is there answers in seconds; a node without one is told of within this. */
const USUAL_WAIT_MS = 30_000;
/** Below what the caller waits for an answer of any kind. */
const LONGEST_WAIT_MS = 110_000;

export function nodeHandlers(calls: GrpcCalls, { resync, memory, overlay, audit, logger }: NodeParts): wire.NodeServiceServer {
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
  };
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
