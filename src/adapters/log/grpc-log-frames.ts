import { createHash } from 'node:crypto';
import { AgentError } from '../../domain/kernel/errors.js';
import {
  type Change,
  type Cursor,
  digest,
  ENTRY_VERSION,
  type LogFrame,
  logKey,
  revision,
  type Snapshot,
  type SnapshotItem,
} from '../../domain/log/model.js';
import type { SnapshotResponse, WatchResponse } from '../generated/holdfast/log/v1/log.js';
import { cursorFromWire, itemFromWire, itemText, valid } from './grpc-log-mapping.js';

/** Joins the messages of a watch to frames, each following on the one before it (engine.md E2, E6). */
export class FrameReader {
  #at: Cursor;
  #changes: Change[] = [];

  constructor(from: Cursor) {
    this.#at = from;
  }

  /**
   * Undefined while more of the frame is to come.
   * @throws AgentError `log.compacted` when something is missing: only a snapshot helps; `log.invalid` for what is no frame
   */
  take(message: WatchResponse): LogFrame | undefined {
    if (message.previous !== this.#at.revision) {
      const problem = `the stream goes on after ${message.previous} where ${this.#at.revision} was read last`;
      throw new AgentError('log.compacted', { problem });
    }
    return valid(() => {
      for (const { key, value } of message.changes) this.#changes.push({ key: logKey(key), value: value ?? null });
      return message.last ? this.#whole(message) : undefined;
    });
  }

  #whole(message: WatchResponse): LogFrame {
    const before = this.#at;
    const changes = this.#changes;
    const place = { revision: revision(message.revision), digest: digest(message.digest) };
    this.#changes = [];
    this.#at = { logId: before.logId, ...place };
    if (message.bookmark) {
      return {
        kind: 'bookmark',
        previous: before.revision,
        ...place,
        head: revision(message.head),
        ageMs: Number(message.ageMs),
      };
    }
    const { requestId, timeMs } = message;
    const own = { version: ENTRY_VERSION, time: Number(timeMs), requestId: requestId === '' ? undefined : requestId };
    return { kind: 'entry', previous: before.revision, entry: { ...own, ...place, previousDigest: before.digest, changes } };
  }
}

/** Joins the pages of a snapshot, which is one only when all of it has come. */
export class SnapshotReader {
  readonly #items: SnapshotItem[] = [];
  readonly #hash = createHash('sha256');

  /**
   * Undefined while more is to come.
   * @throws AgentError `log.corrupt` when what has come is not what was sent, `log.invalid` for what is no item
   */
  take(page: SnapshotResponse): Snapshot | undefined {
    for (const each of page.items) {
      const item = itemFromWire(each);
      this.#hash.update(itemText(item));
      this.#items.push(item);
    }
    if (!page.last) return undefined;
    if (page.count !== BigInt(this.#items.length) || page.digest !== this.#hash.digest('hex')) throw damaged();
    return { cursor: cursorFromWire(page.cursor), time: Number(page.timeMs), items: this.#items };
  }
}

function damaged(): AgentError {
  return new AgentError('log.corrupt', {
    problem: 'a snapshot did not come as it was sent',
    remedy: 'it is asked for again by itself',
  });
}
