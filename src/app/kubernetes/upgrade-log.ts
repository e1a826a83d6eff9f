import { cutUtf8 } from '../../domain/instruction/text.js';
import { payloadOf } from '../../domain/link/payload.js';
import type { LinkSession, LinkUser } from '../link/link-session.js';

const TYPE = 'UpgradeNodeK8sLog';
const MAX_MESSAGE_BYTES = 4_096;
/** Of a time without a link: the newest are kept. */
const MOST_KEPT = 200;

const severities = { info: 1, warning: 2, error: 3 } as const;
export type UpgradeSeverity = keyof typeof severities;

/** What an upgrade is doing, told to the control plane line by line. Nobody answers. */
export class UpgradeLog implements LinkUser {
  readonly #newTag: () => string;
  #session: LinkSession | undefined;
  #kept: string[] = [];

  constructor(newTag: () => string) {
    this.#newTag = newTag;
  }

  /** In order; kept while there is no link. */
  say(message: string, severity: UpgradeSeverity): void {
    const line = payloadOf({ message: cutUtf8(message, MAX_MESSAGE_BYTES), severity: severities[severity] });
    if (this.#session === undefined) this.#kept = [...this.#kept, line].slice(-MOST_KEPT);
    else this.#send(this.#session, line);
  }

  opened(session: LinkSession): void {
    this.#session = session;
    for (const line of this.#kept.splice(0)) this.#send(session, line);
  }

  received(): boolean {
    return false;
  }

  closed(): void {
    this.#session = undefined;
  }

  /** Each under a tag of its own: under its instruction's it would be taken for the answer. */
  #send(session: LinkSession, jsonB64: string): void {
    void session.send({ type: TYPE, tag: this.#newTag(), jsonB64 });
  }
}
