import type { NodelogEntry } from '../../domain/link/calls.js';
import type { Nid } from '../../domain/link/model.js';
import type { Severity } from '../../domain/outbox/model.js';
import type { Clock } from '../../ports/clock.js';
import type { Outbox } from '../../ports/outbox/outbox.js';

const severities: Readonly<Record<NodelogEntry['severity'], Severity>> = { failure: 'error', warning: 'warning', info: 'info' };
const NEVER = new AbortController().signal;

/** What is told of nodes, and by them, as events of the control plane. */
export class NodeEvents {
  readonly #outbox: Outbox;
  readonly #clock: Clock;

  constructor(outbox: Outbox, clock: Clock) {
    this.#outbox = outbox;
    this.#clock = clock;
  }

  status(nid: Nid, text: string): void {
    this.tell('info', `node ${nid}`, text);
  }

  nodelog(nid: Nid, { severity, message, code, cause, remedy }: NodelogEntry): void {
    const parts = [message, code && `(${code})`, cause && `cause: ${cause}`, remedy && `what to do: ${remedy}`];
    this.tell(severities[severity], `node ${nid}`, parts.filter((part) => part !== '').join('; '));
  }

  tell(severity: Severity, subject: string, message: string): void {
    const event = { time: this.#clock.now(), kind: 'event' as const, stream: 'fleet', severity, message, labels: { subject } };
    // The memory outbox takes it at once; one that cannot says so in its statistics.
    this.#outbox.append(event, { signal: NEVER }).catch(() => {});
  }
}
