import { HEARTBEAT_TYPE } from '../link/model.js';

/** Types of replies that no rule of spelling gives away. */
const REPLIES: ReadonlySet<string> = new Set([
  '',
  'ERROR',
  'NO_CONTENT',
  'RESULT_ACK',
  'NODE_VPN_PEER',
  'NODE_STATUS',
  'CLUSTER_JOIN_CMD',
  'INSTALL_HELM_CHART_ERROR',
  'UNINSTALL_HELM_CHART_ERROR',
  'RESTART_SCHEDULED',
  'INSTRUCTION_OUTPUT',
  HEARTBEAT_TYPE,
]);

/** Whether a message of this type is a reply: answering one would let two peers answer each other for ever (engine.md C2). */
export function isReplyType(type: string): boolean {
  return REPLIES.has(type) || /(?:_RESPONSE|Response)$/.test(type);
}

/** Interactive sessions and the link's own messages: somebody else's. */
const FOREIGN: ReadonlySet<string> = new Set(['OPEN_STREAM', 'STREAM_DATA', 'STREAM_RESIZE', 'STREAM_CLOSE', 'DRAINING']);

export function isForeignType(type: string): boolean {
  return FOREIGN.has(type);
}

const KEPT_MS = 10 * 60 * 1_000;
const MOST_TAGS = 1_000;

/** The tags that this agent has made lately: what comes back under them is an answer, however late (engine.md C2). */
export class OwnTags {
  /** In order of their times. */
  readonly #madeAt = new Map<string, number>();

  add(tag: string, now: number): void {
    this.#madeAt.delete(tag);
    this.#madeAt.set(tag, now);
    const [oldest] = this.#madeAt.keys();
    if (this.#madeAt.size > MOST_TAGS && oldest !== undefined) this.#madeAt.delete(oldest);
  }

  has(tag: string, now: number): boolean {
    const madeAt = this.#madeAt.get(tag);
    return madeAt !== undefined && now - madeAt < KEPT_MS;
  }
}
