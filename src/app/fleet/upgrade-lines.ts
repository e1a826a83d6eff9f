import { nodelogSeverity } from '../../domain/link/calls.js';
import type { LinkMessage } from '../../domain/link/model.js';
import { readPayload } from '../../domain/link/payload.js';
import type { NodeSession, NodeUser } from '../link/node-session.js';
import type { NodeEvents } from './node-events.js';

/** What may stand in a line of an upgrade, and in its payload in JSON. */
const MAX_MESSAGE = 4_096;
const MAX_PAYLOAD_BYTES = 6 * MAX_MESSAGE + 1_024;

/** What nodes tell of their upgrades of Kubernetes, as events. */
export class UpgradeLines implements NodeUser {
  readonly #events: Pick<NodeEvents, 'nodelog'>;

  constructor(events: Pick<NodeEvents, 'nodelog'>) {
    this.#events = events;
  }

  opened(): void {}

  /** What is no line is dropped: nobody waits for an answer. */
  received({ identity }: NodeSession, { type, jsonB64 }: LinkMessage): boolean {
    if (type !== 'UpgradeNodeK8sLog') return false;
    const payload = readPayload(jsonB64, MAX_PAYLOAD_BYTES);
    const line = payload.ok ? readLine(payload.value) : undefined;
    if (line === undefined) return true;
    // 1 is information here, and a failure in a nodelog.
    const severity = nodelogSeverity(4 - line.severity);
    const none = { code: '', cause: '', remedy: '', docsUrl: '' };
    this.#events.nodelog(identity.nid, { type, severity, message: `upgrade: ${line.message}`, ...none });
    return true;
  }

  closed(): void {}
}

function readLine(value: unknown): { readonly message: string; readonly severity: number } | undefined {
  if (typeof value !== 'object' || value === null || !('message' in value) || !('severity' in value)) return undefined;
  const { message, severity } = value;
  if (typeof message !== 'string' || typeof severity !== 'number') return undefined;
  return { message: message.slice(0, MAX_MESSAGE), severity };
}
