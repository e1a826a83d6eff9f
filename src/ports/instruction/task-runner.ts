import type { Brand } from '../../domain/kernel/brand.js';
import type { CallOptions } from '../call-options.js';

/** Name of a task's folder: SHA-256 in hex of what asked for it. */
export type TaskId = Brand<string, 'TaskId'>;

/** A program with effects, run outside this process. */
export interface Task {
  readonly id: TaskId;
  /** Absolute path and arguments; no shell. */
  readonly argv: readonly [string, ...string[]];
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute path. */
  readonly cwd: string;
  /** What the program finds beside itself: written 0600 into the task's folder, `%f/<name>` in `argv` is its path. */
  readonly files: Readonly<Record<string, Uint8Array>>;
  /** The whole group is killed when it is over. */
  readonly timeoutMs: number;
  /** Kept of each stream; what is more is dropped and said. */
  readonly maxOutputBytes: number;
}

export interface TaskOutput {
  readonly bytes: Uint8Array;
  /** How many bytes were dropped after these. */
  readonly dropped: number;
}

export interface TailRequest {
  readonly stream: 'stdout' | 'stderr';
  /** Bytes from the beginning of the stream. */
  readonly from: number;
  readonly most: number;
}

export interface TaskTail {
  readonly from: number;
  readonly bytes: Uint8Array;
}

/** How a task ended. Ended right at the deadline is no time-out. */
export interface TaskExit {
  readonly kind: 'exited';
  /** 0 to 255; -1 when it was killed or could not be started. */
  readonly exitCode: number;
  /** Number of the signal that killed it. */
  readonly signal: number | undefined;
  readonly timedOut: boolean;
  readonly cancelled: boolean;
  /** Why it could not be started: the errno's name. */
  readonly startError: string | undefined;
  readonly stdout: TaskOutput;
  readonly stderr: TaskOutput;
}

/** What a folder says of a task, also after the death of every process of ours. */
export type TaskState =
  /** No folder, or none that says `started`: it may be run. */
  | { readonly kind: 'not_started' }
  | { readonly kind: 'running' }
  | TaskExit
  /** It was started, nobody holds its lock and nobody wrote its end. */
  | { readonly kind: 'interrupted' };

/**
 * Runs programs under a small runner of its own session, which outlives this process, keeps the deadline and writes the end. A task id is
 * started once, ever: the second `run` adopts, or tells the end. What the system refuses, other than a start, is
 * `instruction.runner_failed`.
 */
export interface TaskRunner {
  /**
   * Runs the task, or waits for the one that runs, and resolves with its end. On abort the task goes on: `cancel` ends it.
   * @throws AgentError `instruction.not_started` (certainly not), `instruction.interrupted`
   */
  run(task: Task, options: CallOptions): Promise<TaskExit>;

  /**
   * Waits for the end of a task that another process may have started.
   * @throws AgentError `instruction.interrupted`; `instruction.not_started` when there is none
   */
  adopt(id: TaskId, options: CallOptions): Promise<TaskExit>;

  state(id: TaskId, options: CallOptions): Promise<TaskState>;

  /**
   * The newest that is kept of one of its streams, from `from` on and `most` bytes of it: what is older is left out, and `from` says where it
   * begins. Empty when there is no more, or no such task.
   */
  tail(id: TaskId, wanted: TailRequest, options: CallOptions): Promise<TaskTail>;

  /** Its group is killed; resolves when nothing of it is left. Nothing happens to a task that does not run. */
  cancel(id: TaskId, options: CallOptions): Promise<void>;

  /** Every task that has a folder. */
  list(options: CallOptions): Promise<readonly TaskId[]>;

  /**
   * The folder goes with everything in it; where there is none, nothing happens.
   * @throws AgentError `instruction.running`
   */
  forget(id: TaskId, options: CallOptions): Promise<void>;
}
