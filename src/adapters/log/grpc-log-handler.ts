import { AgentError } from '../../domain/kernel/errors.js';
import type { Nid } from '../../domain/link/model.js';
import { SLOW_MS } from '../../domain/log/cursor.js';
import { FilteredStream, type Reads } from '../../domain/log/filter.js';
import type { Cursor, LogFrame } from '../../domain/log/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { NodeProposals } from '../../ports/driving/node-proposals.js';
import type { PeerNode } from '../../ports/driving/node-streams.js';
import type { OrderedLog } from '../../ports/log/ordered-log.js';
import type * as wire from '../generated/holdfast/log/v1/log.js';
import { Slots } from '../threads/slots.js';
import { Backlog } from './grpc-log-backlog.js';
import { EntryEncoder, encodeFrame } from './grpc-log-encoding.js';
import { cursorFromWire, proposalFromWire, resultToWire } from './grpc-log-mapping.js';
import type { Outlet } from './grpc-log-outlet.js';
import { SnapshotPages } from './grpc-log-pages.js';

/** Snapshots under way at once (engine.md I2): with a message each in the transport, 64 MiB. */
const SNAPSHOTS_AT_ONCE = 32;
export const SNAPSHOT_EVERY_MS = 1_000;
/** A node whose streams ended as slow so often in a row gets its snapshot at the pace of `SLOW_BYTES_PER_SECOND`. */
const SLOW_IN_ROW = 3;
const SLOW_BYTES_PER_SECOND = 1024 * 1024;

export interface LogServiceParts {
  readonly log: OrderedLog;
  readonly proposals: NodeProposals;
  /** What nodes may see: the same for all. */
  readonly reads: Reads;
  readonly clock: Clock;
  /** Between two builds of a snapshot, milliseconds; `SNAPSHOT_EVERY_MS` unless given. */
  readonly snapshotEveryMs?: number;
}

/** The ordered log as nodes see it, whatever carries the messages. Streams end with what `OrderedLog` throws. */
export class LogServiceHandler {
  readonly #parts: LogServiceParts;
  readonly #encoder: EntryEncoder;
  readonly #pages: SnapshotPages;
  readonly #backlog: Backlog;
  readonly #snapshots = new Slots(SNAPSHOTS_AT_ONCE);
  /** How often in a row a node was too slow. */
  readonly #slow = new Map<Nid, number>();
  #watchers = 0;

  constructor(parts: LogServiceParts) {
    const { log, reads, clock, snapshotEveryMs = SNAPSHOT_EVERY_MS } = parts;
    this.#parts = parts;
    this.#encoder = new EntryEncoder(reads);
    this.#pages = new SnapshotPages({ log, reads, clock, everyMs: snapshotEveryMs });
    this.#backlog = new Backlog(log, reads, clock);
  }

  /** Streams that run are the caller's to end, before. */
  stop(): void {
    this.#pages.stop();
  }

  /** Open watches, and how many entries and snapshots were encoded so far, for however many nodes. */
  counts() {
    return { watchers: this.#watchers, entriesEncoded: this.#encoder.encoded, snapshotsBuilt: this.#pages.builds };
  }

  async head(options: CallOptions): Promise<wire.HeadResponse> {
    return { cursor: await this.#parts.log.head(options) };
  }

  async propose(node: PeerNode, request: wire.ProposeRequest, options: CallOptions): Promise<wire.ProposeResponse> {
    try {
      return resultToWire(await this.#parts.proposals.propose(node, proposalFromWire(request), options));
    } catch (error) {
      // A proposal that no state could make valid.
      if (error instanceof RangeError) throw new AgentError('log.invalid', { problem: error.message }, { cause: error });
      throw error;
    }
  }

  async snapshot(node: PeerNode, { prefix }: wire.SnapshotRequest, outlet: Outlet, options: CallOptions): Promise<void> {
    await this.#snapshots.use(async () => {
      const { pages } = await this.#pages.beginning(prefix, options);
      const isSlow = (this.#slow.get(node.identity.nid) ?? 0) >= SLOW_IN_ROW;
      for (const page of pages) {
        if (options.signal.aborted) return;
        await outlet.write(page, this.#stalled());
        if (isSlow) await this.#pause(page.length, options);
      }
    }, options);
  }

  async watch(node: PeerNode, { from }: wire.WatchRequest, outlet: Outlet, options: CallOptions): Promise<void> {
    const cursor = cursorFromWire(from);
    const { nid } = node.identity;
    const end = this.#backlog.begin(cursor);
    this.#watchers += 1;
    try {
      await this.#stream(nid, cursor, outlet, options);
      this.#slow.delete(nid);
    } catch (error) {
      const slow = error instanceof AgentError && error.code === 'log.slow';
      if (slow) this.#slow.set(nid, (this.#slow.get(nid) ?? 0) + 1);
      else this.#slow.delete(nid);
      throw error;
    } finally {
      this.#watchers -= 1;
      end();
    }
  }

  async #stream(nid: Nid, from: Cursor, outlet: Outlet, options: CallOptions): Promise<void> {
    const stream = new FilteredStream(from);
    const tooSlow = this.#backlog.paceOf(() => stream.at);
    for await (const frame of this.#parts.log.watch(from, options)) {
      const { changes, parts } = frame.kind === 'entry' ? this.#encoder.encode(frame.entry) : NOTHING;
      const sent = stream.take(frame, changes);
      if (sent === undefined) continue;
      const fields = { head: this.#headOf(stream), ageMs: stream.ageMs, requestId: ownRequest(sent, nid) };
      for (const message of encodeFrame(sent, parts, fields)) await outlet.write(message, tooSlow);
    }
  }

  #headOf(stream: FilteredStream) {
    const head = this.#backlog.head;
    return head !== undefined && head > stream.head ? head : stream.head;
  }

  /** Whether half a minute has passed from now on, in which nothing of what was written has gone. */
  #stalled(): () => boolean {
    const { clock } = this.#parts;
    const begun = clock.monotonic();
    return () => clock.monotonic() - begun >= SLOW_MS;
  }

  async #pause(bytes: number, options: CallOptions): Promise<void> {
    await this.#parts.clock.sleep((bytes / SLOW_BYTES_PER_SECOND) * 1_000, options);
  }
}

const NOTHING = { changes: [], parts: [] } as const;

/** Other nodes' ids are nobody's business. */
function ownRequest(frame: LogFrame, nid: Nid): string {
  const id = frame.kind === 'entry' ? frame.entry.requestId : undefined;
  return id?.startsWith(`${nid}/`) === true ? id : '';
}
