import {
  OUTPUT_PIECE_BYTES,
  OutputBudget,
  type OutputStream,
  outputMessage,
  outputStreams,
} from '../../domain/instruction/live-output.js';
import type { InstructionKey } from '../../domain/instruction/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { TaskId, TaskRunner } from '../../ports/instruction/task-runner.js';
import type { Logger } from '../../ports/logger.js';
import type { LinkSession } from '../link/link-session.js';

export interface LiveOutputParts {
  readonly tasks: TaskRunner;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly newTag: () => string;
}

/** Between looks at what a script has said. */
export const LOOK_MS = 500;

/** Tells a control plane that takes it what scripts say while they run. What it does not get now it gets with the result. */
export class LiveOutput {
  readonly #parts: LiveOutputParts;
  readonly #budget: OutputBudget;
  #current: { readonly session: LinkSession; readonly fleet: string } | undefined;

  constructor(parts: LiveOutputParts) {
    this.#parts = parts;
    this.#budget = new OutputBudget(parts.clock.monotonic());
  }

  opened(session: LinkSession, fleet: string): void {
    const takesIt = session.server?.capabilities.has('live-output') === true;
    this.#current = takesIt ? { session, fleet } : undefined;
  }

  closed(): void {
    this.#current = undefined;
  }

  /** Until what it gives is called. The task may not have begun yet. */
  follow(key: InstructionKey, task: TaskId): () => void {
    const stop = new AbortController();
    this.#tellOn(key, task, stop).catch((error: unknown) => {
      if (!stop.signal.aborted) this.#parts.logger.debug('the output of a script is not told any more', { tag: key.tag, error });
    });
    return () => stop.abort();
  }

  async #tellOn(key: InstructionKey, task: TaskId, { signal }: AbortController): Promise<void> {
    const told: Record<OutputStream, number> = { stdout: 0, stderr: 0 };
    for (;;) {
      await this.#parts.clock.sleep(LOOK_MS, { signal });
      for (const stream of outputStreams) told[stream] = await this.#tell(key, task, { stream, from: told[stream] }, { signal });
    }
  }

  /** Gives up to where the stream has been told, or left out. */
  async #tell(
    { fleet, tag }: InstructionKey,
    task: TaskId,
    { stream, from }: { readonly stream: OutputStream; readonly from: number },
    { signal }: CallOptions,
  ): Promise<number> {
    const { tasks, clock, newTag } = this.#parts;
    const current = this.#current;
    if (current?.fleet !== fleet) return from;
    // In base64 twice, with names: less than twice as much.
    const most = Math.floor(this.#budget.left(clock.monotonic()) / 2);
    if (most === 0) return from;
    const { from: start, bytes } = await tasks.tail(task, { stream, from, most }, { signal });
    for (let at = 0; at < bytes.length; at += OUTPUT_PIECE_BYTES) {
      if (signal.aborted || current.session.signal.aborted) return start + at;
      const piece = { of: tag, stream, seq: start + at, bytes: bytes.subarray(at, at + OUTPUT_PIECE_BYTES) };
      const message = outputMessage(piece, newTag());
      this.#budget.spend(message.jsonB64.length);
      // At the pace of the link: what is said meanwhile is looked at afterwards, or left out.
      await current.session.sendBehind(message);
    }
    return start + bytes.length;
  }
}
