import { kindOf } from '../../domain/instruction/catalogue.js';
import type { Scheduling, Work } from '../../domain/instruction/kinds/kind.js';
import { errorAnswer, keyText } from '../../domain/instruction/model.js';
import { isTask } from '../../domain/instruction/plan.js';
import { type Row, receivedRow } from '../../domain/instruction/row.js';
import type { EffectResult, Effects } from './effects.js';
import { isRefusal, type Request } from './request.js';
import { taskIdOf } from './task-id.js';
import type { Item } from './workbench.js';

/** An older server's caller waits so long. */
const USUAL_WAITER_MS = 25_000;

interface RowContext {
  readonly boot: string;
  readonly sha256: (text: string) => string;
}

/** The journal's row of an instruction that has just arrived. */
export function rowOf(request: Request, { boot, sha256 }: RowContext): Row {
  const { key, kind, work, receivedAt, receivedBootTime, expiresInMs, digest, payloadDigest, who, epoch } = request;
  const task = !isRefusal(work) && isTask(work.plan) ? work.plan : undefined;
  const { lanes, repeat } = isRefusal(work) ? kind.scheduling : work;
  return receivedRow({
    ...key,
    ...{ type: kind.type, digest, payloadDigest, who, epoch, lanes, repeat, receivedAt, boot },
    expiresAt: expiresInMs === undefined ? undefined : receivedAt + expiresInMs,
    expiresAtBoot: expiresInMs === undefined ? undefined : receivedBootTime + expiresInMs,
    waiterMs: isRefusal(work) ? USUAL_WAITER_MS : work.waiterMs,
    task: task === undefined ? undefined : taskIdOf(key, sha256),
    background: task?.do === 'run_script' && task.background,
  });
}

/** An instruction that is to be carried out. */
export function itemOf(request: Request, work: Work, row: Row, effects: Effects): Item {
  const { key, kind, jsonB64, rule, receivedBootTime, session, expiresInMs } = request;
  return {
    ...{ id: keyText(key), row, rule, failure: kind.failure, bytes: jsonB64.length },
    scheduling: withoutRunnersDeadline(work),
    run: (context) => effects.run(work.plan, context),
    startBefore: receivedBootTime + (expiresInMs ?? work.waiterMs),
    received: { at: receivedBootTime, session },
    expires: expiresInMs !== undefined,
  };
}

/** One of an earlier process. */
export function restoredItem(row: Row, run: Item['run'], scheduling?: Scheduling): Item {
  const kind = kindOf(row.type);
  const slot = kind?.scheduling.slot ?? 'work';
  return {
    ...{ id: keyText(row), row, run, rule: 'restart', bytes: 0 },
    failure: kind?.failure ?? errorAnswer,
    scheduling: scheduling ?? { lanes: row.lanes, slot, deadlineMs: undefined, repeat: row.repeat },
    startBefore: Number.POSITIVE_INFINITY,
    received: undefined,
    expires: false,
  };
}

export function withoutRunnersDeadline({ lanes, slot, deadlineMs, repeat, newestOnly, plan }: Work): Scheduling {
  return { lanes, slot, repeat, newestOnly, deadlineMs: isTask(plan) ? undefined : deadlineMs };
}

/** For an instruction that has ended. */
export async function neverRun(): Promise<EffectResult> {
  throw new RangeError('an instruction that has ended does not run');
}
