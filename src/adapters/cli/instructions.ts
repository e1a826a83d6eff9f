import { durationMs } from '../../domain/kernel/duration.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { printable, printableLines } from '../../domain/kernel/printable.js';
import type { GrpcAdminClient } from '../admin/grpc-admin-client.js';
import { type GetInstructionResponse, type Instruction, InstructionState } from '../generated/holdfast/admin/v1/fleet.js';
import { isConfirmed } from './confirm.js';
import { type CliContext, type ExitCode, exitCodes, type GlobalOptions, UsageError, withClient } from './context.js';
import { age, bytes, json, paint, structured, table } from './output.js';

export interface SendOptions extends GlobalOptions {
  readonly json?: string;
  readonly tag?: string;
  readonly expires?: string;
  readonly wait: boolean;
  readonly yes: boolean;
}

export interface ResultsOptions extends GlobalOptions {
  readonly watch: boolean;
}

/** What a node does not come back from as it was. */
const DESTRUCTIVE: ReadonlySet<string> = new Set(['UNINSTALL_NODE', 'REINSTALL_NODE']);
/** One request of 1 MiB, and room to say that it is too large. */
const MAX_STDIN_BYTES = 2 * 1024 * 1024;

/** `holdfast send NODE TYPE`. With `--wait` until it has ended, and then its result. */
export async function send(context: CliContext, node: string, type: string, options: SendOptions): Promise<ExitCode> {
  if (DESTRUCTIVE.has(type) && !options.yes) {
    if (!(await isConfirmed(context, `send ${type} to ${node}`, 'What runs on it is lost.'))) {
      context.console.err('nothing was sent\n');
      return exitCodes.failed;
    }
  }
  const expiresMs = BigInt(optionalDuration('--expires', options.expires) ?? 0);
  const json = options.json === '-' ? await readText(context) : (options.json ?? '');
  return withClient(context, options, async (client) => {
    const request = { node, type, json, tag: options.tag ?? '', expiresMs };
    const { instruction } = await client.send(request, context);
    const sent = required(instruction);
    if (!options.wait) return printStatus(context, sent, options);
    if (context.console.interactive) context.console.err(`sent to ${sent.node} as ${sent.tag}; waiting for its result\n`);
    return printResult(context, await waitFor(context, client, sent.node, sent.tag), options);
  });
}

/** All, those of a node, or the result of one; with `--watch` changes as they come, or the result when it is there. */
export async function results(
  context: CliContext,
  node: string | undefined,
  tag: string | undefined,
  options: ResultsOptions,
): Promise<ExitCode> {
  return withClient(context, options, async (client) => {
    if (node !== undefined && tag !== undefined) {
      const result = options.watch
        ? await waitFor(context, client, node, tag)
        : await client.getInstruction({ node, tag }, context);
      return printResult(context, result, options);
    }
    if (options.watch) return watchAll(context, client, node ?? '', options);
    const { instructions } = await client.listInstructions({ node: node ?? '' }, context);
    return printList(context, instructions, options);
  });
}

export async function cancel(context: CliContext, node: string, tag: string, options: GlobalOptions): Promise<ExitCode> {
  const { instruction } = await withClient(context, options, (client) => client.cancelInstruction({ node, tag }, context));
  return printStatus(context, required(instruction), options);
}

/** Its result when it has ended. @throws AgentError `dispatch.not_found` */
async function waitFor(context: CliContext, client: GrpcAdminClient, node: string, tag: string): Promise<GetInstructionResponse> {
  // What is not there is told at once, and not waited for.
  await client.getInstruction({ node, tag }, context);
  for await (const { instruction } of client.watchInstructions({ node, tag }, context)) {
    if (instruction !== undefined && hasEnded(instruction)) break;
  }
  context.signal.throwIfAborted();
  return client.getInstruction({ node, tag }, context);
}

async function watchAll(
  context: CliContext,
  client: GrpcAdminClient,
  node: string,
  { output }: GlobalOptions,
): Promise<ExitCode> {
  const { console } = context;
  for await (const { instruction } of client.watchInstructions({ node, tag: '' }, context)) {
    const shown = shownOf(required(instruction));
    if (output === 'json') console.out(json(shown));
    else if (output === 'yaml') console.out(`---\n${structured('yaml', shown)}`);
    else
      console.out(
        `${printable(`${shown.node}  ${shown.tag}  ${shown.type}  ${shown.state}  ${outcome(required(instruction))}`)}\n`,
      );
  }
  return exitCodes.done;
}

function printList({ console }: CliContext, instructions: readonly Instruction[], { output }: GlobalOptions): ExitCode {
  if (output !== 'table') console.out(structured(output, { instructions: instructions.map(shownOf) }));
  else if (instructions.length === 0) console.err('no instruction; finished ones are kept for 24 hours\n');
  else {
    const rows = instructions.map((instruction) => {
      const { node, tag, type, state } = shownOf(instruction);
      return [node, tag, type, state, age(Date.now() - Number(instruction.issuedAtMs)), outcome(instruction)];
    });
    console.out(table(['NODE', 'TAG', 'TYPE', 'STATE', 'AGE', 'OUTCOME'], rows));
  }
  return exitCodes.done;
}

function printStatus({ console }: CliContext, instruction: Instruction, { output }: GlobalOptions): ExitCode {
  if (output !== 'table') console.out(structured(output, shownOf(instruction)));
  else {
    const { node, tag, state } = shownOf(instruction);
    console.out(`${printable(`${node} ${tag} ${state}: ${outcome(instruction)}`)}\n`);
  }
  return exitCodes.done;
}

/** The reply's JSON on standard output, the text of a failure on standard error. */
function printResult(
  context: CliContext,
  { instruction, replyJsonB64, replyWithheld }: GetInstructionResponse,
  options: GlobalOptions,
): ExitCode {
  const ended = required(instruction);
  const reply = replyWithheld ? undefined : replyOf(ended, replyJsonB64);
  const { console } = context;
  if (options.output !== 'table') {
    console.out(structured(options.output, { ...shownOf(ended), ...(reply === undefined ? {} : { reply: reply.value }) }));
    return failed(ended) ? exitCodes.failed : exitCodes.done;
  }
  if (!hasEnded(ended)) return printStatus(context, ended, options);
  if (replyWithheld) {
    printStatus(context, ended, options);
    console.err('what it says is not for the role of this certificate\n');
    return failed(ended) ? exitCodes.failed : exitCodes.done;
  }
  if (reply === undefined) console.err(`${paint(console, 'red', 'error')}: ${printable(withoutReply(ended))}\n`);
  else if (ended.replyType === 'ERROR') console.err(`${paint(console, 'red', 'error')}: ${printableLines(reply.text)}\n`);
  else console.out(`${printableLines(reply.text)}\n`);
  return failed(ended) ? exitCodes.failed : exitCodes.done;
}

/** Undefined when there is none. `text` is as the node wrote it, so that no number loses a digit. */
function replyOf({ replyType }: Instruction, jsonB64: string): { readonly text: string; readonly value: unknown } | undefined {
  if (replyType === '') return undefined;
  if (replyType === 'ERROR') return { text: errorText(jsonB64), value: errorText(jsonB64) };
  const text = Buffer.from(jsonB64, 'base64').toString();
  try {
    return { text, value: JSON.parse(text) };
  } catch {
    return { text, value: text };
  }
}

/** Some agents send base64 of `{"errMsg"}` instead of the text itself. */
function errorText(jsonB64: string): string {
  try {
    const value: unknown = JSON.parse(Buffer.from(jsonB64, 'base64').toString());
    if (typeof value === 'object' && value !== null && 'errMsg' in value && typeof value.errMsg === 'string') return value.errMsg;
  } catch {
    // It is the text.
  }
  return jsonB64;
}

function failed({ state, replyType }: Instruction): boolean {
  if (state === InstructionState.DONE) return replyType === 'ERROR' || replyType.endsWith('_ERROR');
  return hasEnded({ state });
}

function hasEnded({ state }: Pick<Instruction, 'state'>): boolean {
  return (
    state === InstructionState.DONE ||
    state === InstructionState.UNKNOWN ||
    state === InstructionState.EXPIRED ||
    state === InstructionState.CANCELLED
  );
}

function withoutReply({ state, reason }: Instruction): string {
  const word = state === InstructionState.UNKNOWN ? 'outcome unknown' : wordOf(state);
  return reason === '' ? word : `${word}, ${reason}`;
}

/** In a few words: what came of it, or what it waits for. */
function outcome(instruction: Instruction): string {
  if (instruction.replyType !== '') return `${instruction.replyType}, ${bytes(Number(instruction.replyBytes))}`;
  if (hasEnded(instruction)) return instruction.reason;
  return `waits for ${instruction.waitsFor}`;
}

function shownOf({ state, issuedAtMs, expiresAtMs, deliveredAtMs, finishedAtMs, replyBytes, ...rest }: Instruction) {
  const times = {
    issuedAt: time(issuedAtMs),
    expiresAt: time(expiresAtMs),
    deliveredAt: time(deliveredAtMs),
    finishedAt: time(finishedAtMs),
  };
  return { ...rest, state: wordOf(state), replyBytes: Number(replyBytes), ...times };
}

function wordOf(state: InstructionState): string {
  return InstructionState[state]?.toLowerCase() ?? 'unknown';
}

function time(ms: bigint): string | undefined {
  return ms === 0n ? undefined : new Date(Number(ms)).toISOString();
}

/** @throws UsageError */
export function optionalDuration(flag: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const ms = durationMs(value);
  // Nothing at all is how "not given" is sent.
  if (ms === undefined || ms === 0)
    throw new UsageError(`expected a duration of 1ms to 576h after ${flag}, such as 30s, 5m or 2h, found ${value}`);
  return ms;
}

async function readText({ stdin }: CliContext): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stdin) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MAX_STDIN_BYTES) throw new AgentError('dispatch.too_large', { problem: 'there is more on standard input' });
  }
  return Buffer.concat(chunks).toString().trim();
}

function required(instruction: Instruction | undefined): Instruction {
  if (instruction === undefined) throw new AgentError('admin.failed', { problem: 'the daemon answered without an instruction' });
  return instruction;
}
