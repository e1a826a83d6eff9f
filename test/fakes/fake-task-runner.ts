import { AgentError } from '../../src/domain/kernel/errors.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { Clock } from '../../src/ports/clock.js';
import type {
  TailRequest,
  Task,
  TaskExit,
  TaskId,
  TaskOutput,
  TaskRunner,
  TaskState,
  TaskTail,
} from '../../src/ports/instruction/task-runner.js';
import { FakeClock } from './fake-clock.js';

/** What a program leaves; exit code 0 and no output unless said. */
export interface ProgramEnd {
  readonly exitCode?: number;
  readonly signal?: number;
  readonly stdout?: string | Uint8Array;
  readonly stderr?: string | Uint8Array;
}

/** Is run for a task; `signal` fires when it is killed, and what it answers afterwards is lost. */
export type Program = (task: Task, options: CallOptions) => ProgramEnd | Promise<ProgramEnd>;

interface Run {
  state: TaskState;
  said: Readonly<Record<TailRequest['stream'], Uint8Array>>;
  readonly ended: Promise<void>;
  readonly end: (state: TaskState) => void;
}

/**
 * Programs by `argv[0]`, run in memory. It is the disk and the processes as well: an agent that starts again gets the same one. A task
 * ends at its deadline on `clock`; one whose program is not there ends with `startError` ENOENT.
 */
export class FakeTaskRunner implements TaskRunner {
  /** Every task that was started, in that order. */
  readonly started: Task[] = [];
  readonly #programs: Map<string, Program>;
  readonly #clock: Clock;
  readonly #runs = new Map<TaskId, Run>();
  #failure: unknown;

  constructor(programs: Readonly<Record<string, Program>> = {}, clock: Clock = new FakeClock()) {
    this.#programs = new Map(Object.entries(programs));
    this.#clock = clock;
  }

  /** From now on `path` is this program. */
  install(path: string, program: Program): void {
    this.#programs.set(path, program);
  }

  /** The next run rejects with `error` and starts nothing. */
  failNext(error: unknown = new AgentError('instruction.not_started', { problem: 'told to fail' })): void {
    this.#failure = error;
  }

  /** Every process of this task dies, as in a power cut. Nothing happens to one that has ended. */
  interrupt(id: TaskId): void {
    this.#runs.get(id)?.end({ kind: 'interrupted' });
  }

  async run(task: Task, options: CallOptions): Promise<TaskExit> {
    options.signal.throwIfAborted();
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
    if (!this.#runs.has(task.id)) this.#start(task);
    return this.adopt(task.id, options);
  }

  async adopt(id: TaskId, { signal }: CallOptions): Promise<TaskExit> {
    signal.throwIfAborted();
    const run = this.#runs.get(id);
    if (run === undefined) throw new AgentError('instruction.not_started', { task: id });
    await unlessAborted(run.ended, signal);
    if (run.state.kind !== 'exited') throw new AgentError('instruction.interrupted', { task: id });
    return run.state;
  }

  async state(id: TaskId, { signal }: CallOptions): Promise<TaskState> {
    signal.throwIfAborted();
    return this.#runs.get(id)?.state ?? { kind: 'not_started' };
  }

  /** Programs that end at once say everything at their end; `say` is what one says before. */
  async tail(id: TaskId, { stream, from, most }: TailRequest, { signal }: CallOptions): Promise<TaskTail> {
    signal.throwIfAborted();
    const run = this.#runs.get(id);
    const said = run?.state.kind === 'exited' ? run.state[stream].bytes : (run?.said[stream] ?? new Uint8Array());
    const start = Math.max(from, said.length - most);
    return start >= said.length ? { from, bytes: new Uint8Array() } : { from: start, bytes: said.slice(start) };
  }

  /** A task that runs says this now, on top of what it has said. */
  say(id: TaskId, stream: TailRequest['stream'], text: string): void {
    const run = this.#runs.get(id);
    if (run?.state.kind !== 'running') throw new Error(`no task ${id} runs`);
    run.said = { ...run.said, [stream]: Buffer.concat([run.said[stream], Buffer.from(text)]) };
  }

  async cancel(id: TaskId, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    this.#runs.get(id)?.end(killed({ cancelled: true }));
  }

  async list({ signal }: CallOptions): Promise<readonly TaskId[]> {
    signal.throwIfAborted();
    return [...this.#runs.keys()].sort();
  }

  async forget(id: TaskId, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    if (this.#runs.get(id)?.state.kind === 'running') throw new AgentError('instruction.running', { task: id });
    this.#runs.delete(id);
  }

  /** `id kind`, one a line, by id. */
  dump(): string {
    return [...this.#runs]
      .map(([id, { state }]) => `${id} ${state.kind}`)
      .sort()
      .join('\n');
  }

  #start(task: Task): void {
    const killer = new AbortController();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const run: Run = {
      state: { kind: 'running' },
      said: { stdout: new Uint8Array(), stderr: new Uint8Array() },
      ended,
      end: (state) => {
        if (run.state.kind !== 'running') return;
        run.state = state;
        killer.abort();
        resolve();
      },
    };
    this.#runs.set(task.id, run);
    this.started.push(task);
    this.#clock.sleep(task.timeoutMs, { signal: killer.signal }).then(
      () => run.end(killed({ timedOut: true })),
      () => {},
    );
    void this.#execute(task, killer.signal).then(run.end);
  }

  async #execute(task: Task, signal: AbortSignal): Promise<TaskExit> {
    const program = this.#programs.get(task.argv[0]);
    if (program === undefined) return { ...killed({}), signal: undefined, startError: 'ENOENT' };
    const { exitCode = 0, signal: number, stdout = '', stderr = '' } = await program(task, { signal });
    return {
      ...killed({}),
      exitCode: number === undefined ? exitCode : -1,
      signal: number,
      stdout: kept(stdout, task.maxOutputBytes),
      stderr: kept(stderr, task.maxOutputBytes),
    };
  }
}

const SIGKILL = 9;
const nothing: TaskOutput = { bytes: new Uint8Array(), dropped: 0 };

function killed({
  timedOut = false,
  cancelled = false,
}: {
  readonly timedOut?: boolean;
  readonly cancelled?: boolean;
}): TaskExit {
  return {
    kind: 'exited',
    exitCode: -1,
    signal: SIGKILL,
    timedOut,
    cancelled,
    startError: undefined,
    stdout: nothing,
    stderr: nothing,
  };
}

function kept(output: string | Uint8Array, limit: number): TaskOutput {
  const bytes = typeof output === 'string' ? new TextEncoder().encode(output) : output;
  return { bytes: bytes.slice(0, limit), dropped: Math.max(0, bytes.length - limit) };
}

/** Rejects at once on abort; `work` goes on. */
async function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
