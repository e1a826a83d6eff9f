import type { Subsystem } from '../../src/app/agent/subsystem.js';

export type FakeStep = 'start' | 'ready' | 'stop';
/** `hang` ends when its signal does; `hang for ever` never. */
export type FakeBehaviour = 'ok' | 'hang' | 'hang for ever' | Error;

/** Writes what happens to it into `journal`, which it shares with others. */
export class FakeSubsystem implements Subsystem {
  readonly name: string;
  readonly stopBudgetMs?: number;
  readonly #journal: string[];
  readonly #behaviour = new Map<FakeStep, FakeBehaviour>();
  readonly #hanging = new Map<FakeStep, PromiseWithResolvers<void>>();

  constructor(name: string, journal: string[] = [], options: { readonly stopBudgetMs?: number } = {}) {
    this.name = name;
    this.#journal = journal;
    if (options.stopBudgetMs !== undefined) this.stopBudgetMs = options.stopBudgetMs;
  }

  will(step: FakeStep, behaviour: FakeBehaviour): this {
    this.#behaviour.set(step, behaviour);
    return this;
  }

  /** Lets a hanging step go on, now or when it comes. */
  finish(step: FakeStep, error?: Error): void {
    if (error === undefined) this.#hang(step).resolve();
    else this.#hang(step).reject(error);
  }

  start(signal: AbortSignal): Promise<void> {
    this.#journal.push(`start ${this.name}`);
    return this.#do('start', signal);
  }

  ready(signal: AbortSignal): Promise<void> {
    return this.#do('ready', signal);
  }

  stop(signal: AbortSignal): Promise<void> {
    this.#journal.push(`stop ${this.name}`);
    return this.#do('stop', signal);
  }

  async #do(step: FakeStep, signal: AbortSignal): Promise<void> {
    const behaviour = this.#behaviour.get(step) ?? 'ok';
    if (behaviour === 'ok') return;
    if (behaviour instanceof Error) throw behaviour;
    const { promise, reject } = this.#hang(step);
    if (behaviour === 'hang') signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    await promise;
    this.#journal.push(`${step} of ${this.name} went on`);
  }

  #hang(step: FakeStep): PromiseWithResolvers<void> {
    const hanging = this.#hanging.get(step) ?? Promise.withResolvers<void>();
    this.#hanging.set(step, hanging);
    return hanging;
  }
}
