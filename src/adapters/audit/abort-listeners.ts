interface Listening {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

/**
 * Callbacks for the aborts of signals that many calls share: adding one to a signal that has n listeners takes n steps, so that 10,000 at
 * once would take a second of the main thread. Here a signal has one.
 */
export class AbortListeners {
  readonly #bySignal = new Map<AbortSignal, Listening>();

  /** `callback` runs when the signal aborts, until the function that is returned is called. It belongs to this call alone. */
  add(signal: AbortSignal, callback: () => void): () => void {
    const { callbacks } = this.#bySignal.get(signal) ?? this.#listen(signal);
    callbacks.add(callback);
    return () => {
      const current = this.#bySignal.get(signal);
      current?.callbacks.delete(callback);
      if (current?.callbacks.size === 0) this.#leave(signal, current);
    };
  }

  #listen(signal: AbortSignal): Listening {
    const callbacks = new Set<() => void>();
    const listening = { callbacks, listener: () => this.#abort(signal, callbacks) };
    this.#bySignal.set(signal, listening);
    signal.addEventListener('abort', listening.listener);
    return listening;
  }

  #abort(signal: AbortSignal, callbacks: ReadonlySet<() => void>): void {
    for (const callback of [...callbacks]) callback();
    const current = this.#bySignal.get(signal);
    if (current?.callbacks === callbacks) this.#leave(signal, current);
  }

  #leave(signal: AbortSignal, { listener }: Listening): void {
    signal.removeEventListener('abort', listener);
    this.#bySignal.delete(signal);
  }
}
