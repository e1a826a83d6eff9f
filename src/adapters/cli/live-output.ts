import { AgentError } from '../../domain/kernel/errors.js';
import type { GrpcAdminClient } from '../admin/grpc-admin-client.js';
import type { GetInstructionResponse } from '../generated/holdfast/admin/v1/fleet.js';
import type { CliContext } from './context.js';
import type { Console } from './output.js';

type Stream = 'stdout' | 'stderr';

/** One of a script's streams as it is shown: nothing of it twice, and gaps are said. */
class ShownStream {
  readonly #show: (text: string) => void;
  readonly #note: (text: string) => void;
  /** Characters may be cut anywhere by the pieces that they come in. */
  readonly #decoder = new TextDecoder();
  #end = 0;

  constructor(show: (text: string) => void, note: (text: string) => void) {
    this.#show = show;
    this.#note = note;
  }

  /** `offset` bytes of the stream are before these. */
  take(offset: number, bytes: Uint8Array): void {
    const known = Math.max(0, this.#end - offset);
    if (known >= bytes.length) return;
    if (offset > this.#end) this.#note(`[${offset - this.#end} bytes are left out here; \`holdfast results\` has them]\n`);
    this.#end = offset + bytes.length;
    this.#show(this.#decoder.decode(bytes.subarray(known), { stream: true }));
  }

  /** What of the whole text has not been shown. */
  finish(text: string): void {
    this.take(this.#end, Buffer.from(text).subarray(this.#end));
    this.#show(this.#decoder.decode());
  }
}

/** What a script says on the streams of this program, as it comes. */
export class LiveOutput {
  readonly #context: CliContext;
  readonly #streams: Readonly<Record<Stream, ShownStream>>;

  constructor(context: CliContext) {
    const { console } = context;
    const note = (text: string) => console.err(text);
    this.#context = context;
    this.#streams = { stdout: shown((text) => console.out(text), note), stderr: shown((text) => console.err(text), note) };
  }

  /** Until the instruction has ended, or `signal` says so. What cannot be shown now is shown at the end. */
  async show(client: GrpcAdminClient, node: string, tag: string, signal: AbortSignal): Promise<void> {
    try {
      for await (const { stream, offset, data } of client.followOutput({ node, tag }, { signal })) {
        if (stream === 'stdout' || stream === 'stderr') this.#streams[stream].take(Number(offset), data);
      }
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      this.#context.console.err(`nothing is shown before the result: ${error.message}\n`);
    }
  }

  /** The rest of a script's result, and how it ended. False for another result, of which nothing is shown here. */
  finish({ instruction, replyJsonB64 }: GetInstructionResponse): boolean {
    if (instruction?.replyType !== 'RUN_REMOTE_SCRIPT_RESPONSE') return false;
    const reply = scriptReply(replyJsonB64);
    if (reply === undefined) return false;
    this.#streams.stdout.finish(reply.response);
    this.#streams.stderr.finish(reply.stderr);
    const { console } = this.#context;
    console.err(reply.timedOut ? 'killed at its deadline\n' : `exit code ${reply.exitCode}\n`);
    return true;
  }
}

function shown(show: (text: string) => void, note: Console['err']): ShownStream {
  return new ShownStream((text) => {
    if (text !== '') show(text);
  }, note);
}

function scriptReply(jsonB64: string) {
  try {
    const value: unknown = JSON.parse(Buffer.from(jsonB64, 'base64').toString());
    if (typeof value !== 'object' || value === null) return undefined;
    const { response, stderr, exitCode, timedOut } = value as Readonly<Record<string, unknown>>;
    if (typeof response !== 'string' || typeof stderr !== 'string' || typeof exitCode !== 'number') return undefined;
    return { response, stderr, exitCode, timedOut: timedOut === true };
  } catch {
    return undefined;
  }
}
