/** The caller's signal with a time limit. `close` it, or its timer holds the process. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal;
  readonly #onAbort = () => this.#controller.abort(this.#outer.reason);
  readonly #timer: NodeJS.Timeout;
  #expired = false;

  constructor(ms: number, outer: AbortSignal) {
    this.#outer = outer;
    outer.addEventListener('abort', this.#onAbort);
    this.#timer = setTimeout(() => {
      this.#expired = true;
      this.#controller.abort(new Error(`${ms} ms are over`));
    }, ms);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether it was the time that ended it. */
  get expired(): boolean {
    return this.#expired;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#outer.removeEventListener('abort', this.#onAbort);
  }
}

/** `work`, or a rejection as soon as the signal aborts; work that nothing can stop then ends unheard. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
