/** The caller's signal with a time limit. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Whether it was the time that ended it. */
  expired(): boolean;
  /** Until then its timer holds the process. */
  close(): void;
}

export function startDeadline(ms: number, outer: AbortSignal): Deadline {
  const controller = new AbortController();
  let expired = false;
  const onAbort = () => controller.abort(outer.reason);
  outer.addEventListener('abort', onAbort);
  const timer = setTimeout(() => {
    expired = true;
    controller.abort(new Error(`${ms} ms are over`));
  }, ms);
  return {
    signal: controller.signal,
    expired: () => expired,
    close: () => {
      clearTimeout(timer);
      outer.removeEventListener('abort', onAbort);
    },
  };
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
