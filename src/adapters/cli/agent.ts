import { printable } from '../../domain/kernel/printable.js';
import type { JournalledInstruction, ListJournalResponse } from '../generated/holdfast/admin/v1/node.js';
import { type CliContext, type ExitCode, exitCodes, type GlobalOptions, withClient } from './context.js';
import { optionalDuration } from './instructions.js';
import { age, structured, table } from './output.js';

export interface ResyncOptions extends GlobalOptions {
  readonly accept: boolean;
  readonly timeout: string;
}

/** Code 1 when the new state is held back: nothing was changed. */
export async function resync(context: CliContext, options: ResyncOptions): Promise<ExitCode> {
  const { console } = context;
  const timeoutMs = BigInt(optionalDuration('--timeout', options.timeout) ?? 0);
  const request = { accept: options.accept, timeoutMs };
  const { revision, heldReason } = await withClient(context, options, (client) => client.resync(request, context));
  const held = heldReason !== '';
  if (options.output !== 'table')
    console.out(structured(options.output, held ? { held, reason: heldReason } : { held, revision }));
  else if (held)
    console.err(`held back: ${printable(heldReason)}\n  what to do: holdfast resync --accept, if that is what is wanted\n`);
  else console.out(`in step with the control plane at revision ${revision}\n`);
  return held ? exitCodes.failed : exitCodes.done;
}

export async function journal(context: CliContext, options: GlobalOptions): Promise<ExitCode> {
  const { console } = context;
  const response = await withClient(context, options, (client) => client.listJournal(context));
  if (options.output !== 'table') console.out(structured(options.output, shownOf(response)));
  else console.out(formatJournal(response));
  return exitCodes.done;
}

function formatJournal({ journalId, journalCounter, waiting, running, unconfirmed, instructions }: ListJournalResponse): string {
  const facts = table(
    ['JOURNAL', journalId || 'none'],
    [
      ['commits', String(journalCounter)],
      ['instructions', `${running} running, ${waiting} waiting, ${unconfirmed} results not confirmed`],
    ],
  );
  if (instructions.length === 0) return facts;
  const header = ['TAG', 'TYPE', 'STATE', 'ATTEMPT', 'OUTCOME', 'AGE', 'TOOK', 'WAITS FOR'];
  return `${facts}\n${table(header, instructions.map(rowOf))}`;
}

function rowOf({ tag, type, state, attempt, outcome, receivedAtMs, finishedAtMs, waitsFor }: JournalledInstruction) {
  const took = finishedAtMs === 0n ? '-' : age(Number(finishedAtMs - receivedAtMs));
  return [tag, type, state, String(attempt), outcome || '-', age(Date.now() - Number(receivedAtMs)), took, waitsFor];
}

function shownOf({ journalId, journalCounter, instructions, ...rest }: ListJournalResponse) {
  const time = (ms: bigint) => (ms === 0n ? undefined : new Date(Number(ms)).toISOString());
  return {
    journal: { id: journalId, counter: journalCounter },
    ...rest,
    instructions: instructions.map(({ receivedAtMs, finishedAtMs, ...instruction }) => ({
      ...instruction,
      receivedAt: time(receivedAtMs),
      finishedAt: time(finishedAtMs),
    })),
  };
}
