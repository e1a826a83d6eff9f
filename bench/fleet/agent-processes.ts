import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Answer, CallName, Calls, Registered, ServerPlace } from './protocol.ts';

/** In one process: 250 connections and a tenth of a core while nothing happens. */
const AGENTS_PER_PROCESS = 250;
const flags = ['--disable-warning=ExperimentalWarning', '--disable-warning=DEP0123', '--max-semi-space-size=16'];

/** A fleet of agents, spread over processes, and asked as one. */
export class AgentProcesses implements AsyncDisposable {
  readonly #processes: readonly AgentProcess[];

  /** What is asked fails when the signal is aborted. */
  constructor(agents: number, signal: AbortSignal) {
    this.#processes = Array.from({ length: Math.ceil(agents / AGENTS_PER_PROCESS) }, () => new AgentProcess(signal));
  }

  get count(): number {
    return this.#processes.length;
  }

  /** One agent a token. */
  async register(server: ServerPlace, tokens: readonly string[]): Promise<Registered> {
    const share = Math.ceil(tokens.length / this.#processes.length);
    const parts = await this.#all((each, index) =>
      each.call('register', { server, first: index * share, tokens: tokens.slice(index * share, (index + 1) * share) }),
    );
    return {
      callsMs: parts.flatMap(({ callsMs }) => callsMs),
      heldBack: parts.reduce((sum, { heldBack }) => sum + heldBack, 0),
    };
  }

  /** Evenly over a time; resolves when the last one was started. */
  async start(overMs: number): Promise<void> {
    await this.#all((each) => each.call('start', { overMs }));
  }

  async linked(): Promise<number> {
    const parts = await this.#all((each) => each.call('linked', {}));
    return parts.reduce((sum, { agents }) => sum + agents, 0);
  }

  /** When each agent that has the revision in time had it, milliseconds of `instant()`, sorted. */
  async arrivals(revision: bigint, withinMs: number): Promise<readonly number[]> {
    const parts = await this.#all((each) => each.call('arrivals', { revision, withinMs }));
    return parts.flatMap(({ at }) => at).sort((a, b) => a - b);
  }

  async beats(): Promise<readonly number[]> {
    return (await this.#all((each) => each.call('beats', {}))).flatMap(({ roundTripsMs }) => roundTripsMs);
  }

  async stop(): Promise<void> {
    await this.#all((each) => each.call('stop', {}));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#all((each) => each.end());
  }

  #all<T>(ask: (process: AgentProcess, index: number) => Promise<T>): Promise<T[]> {
    return Promise.all(this.#processes.map(ask));
  }
}

class AgentProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #asked = new Map<number, PromiseWithResolvers<unknown>>();
  #number = 0;

  constructor(signal: AbortSignal) {
    this.#child = fork(join(import.meta.dirname, 'agents.ts'), [], { execArgv: flags, serialization: 'advanced' });
    this.#exited = once(this.#child, 'exit');
    this.#child.on('message', (answer) => this.#answered(answer as Answer));
    signal.addEventListener('abort', () => this.#failAll(signal.reason), { once: true });
    this.#child.on('exit', (code) => this.#failAll(new Error(`a process of agents ended with ${code}`)));
  }

  async call<Name extends CallName>(name: Name, ask: Calls[Name]['ask']): Promise<Calls[Name]['answer']> {
    const asked = Promise.withResolvers<unknown>();
    this.#number += 1;
    this.#asked.set(this.#number, asked);
    this.#child.send({ number: this.#number, name, ask });
    return (await asked.promise) as Calls[Name]['answer'];
  }

  async end(): Promise<void> {
    this.#failAll(new Error('the bench is over'));
    if (this.#child.connected) this.#child.disconnect();
    await this.#exited;
  }

  #answered({ number, answer, problem }: Answer): void {
    const asked = this.#asked.get(number);
    this.#asked.delete(number);
    if (problem === undefined) asked?.resolve(answer);
    else asked?.reject(new Error(problem));
  }

  #failAll(error: unknown): void {
    for (const asked of this.#asked.values()) asked.reject(error);
    this.#asked.clear();
  }
}
