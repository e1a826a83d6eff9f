import { tokenPrefix } from '../../domain/certificate/records.js';
import { decodeToken } from '../../domain/certificate/schema.js';
import { decodeRow, instructionPrefix, isFinished } from '../../domain/dispatch/model.js';
import { settled } from '../../domain/dispatch/plan.js';
import { decodeStream, encodeStream, restoredStream, streamPrefix } from '../../domain/link/stream-record.js';
import { decodeVipRecord, encodeVipRecord, restoredVip, vipPrefix } from '../../domain/vip/fleet.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ControlStore, StoredValue, Write } from '../../ports/store/control-store.js';
import { writesOf } from '../dispatch/node-deliveries.js';

export interface Settled {
  readonly streams: number;
  /** That were not finished. */
  readonly instructions: number;
  /** That could still have been used. */
  readonly tokens: number;
}

const REASON = 'the control plane was put back from a backup: it may have been carried out';

/**
 * Makes a store that is older than its nodes safe to serve from. Nodes have seen later streams: their epochs are raised above any that can
 * have been, so that they are obeyed (engine.md B2). Nothing that may have been carried out since is sent again: unfinished instructions
 * end as `unknown`, unless their results come after all. No token is left that may have been used since. No virtual IP is given to anybody
 * before whoever has got it since has lost it.
 * @throws AgentError `store.*`
 */
export async function settleRestored(store: ControlStore, now: number, options: CallOptions): Promise<Settled> {
  const [streams, rows, tokens, vips] = await Promise.all(
    [streamPrefix, instructionPrefix, tokenPrefix, vipPrefix].map((prefix) => store.list(prefix, options)),
  );
  const steps = {
    streams: (streams ?? []).map(({ key, value }) => [{ key, value: encodeStream(restoredStream(decodeStream(value))) }]),
    instructions: (rows ?? []).flatMap((stored) => settleRow(stored, now)),
    tokens: (tokens ?? [])
      .filter(({ key, value }) => decodeToken(key, value).used === undefined)
      .map(({ key }) => [{ key, value: null }]),
    vips: (vips ?? []).map(({ key, value }) => [{ key, value: encodeVipRecord(restoredVip(decodeVipRecord(value), now)) }]),
  };
  for (const step of [...steps.tokens, ...steps.instructions, ...steps.vips, ...steps.streams])
    await store.commit([], step, options);
  return { streams: steps.streams.length, instructions: steps.instructions.length, tokens: steps.tokens.length };
}

function settleRow({ value, version }: StoredValue, now: number): readonly (readonly Write[])[] {
  const row = decodeRow(value);
  if (isFinished(row)) return [];
  const kept = { row, version };
  return [writesOf(kept, settled({ kept, state: 'unknown', reason: REASON }, now))];
}
