import type { LogId, Revision } from '../../domain/log/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { ControlStore, StoredValue, Write } from '../../ports/store/control-store.js';
import { MAX_COMMIT_BYTES, MAX_OPERATIONS } from '../../ports/store/control-store.js';
import type { EtcdClient } from '../etcd/etcd-client.js';
import { EtcdLogStore } from '../log/etcd-log-store.js';
import { readEtcdLog } from '../log/etcd-whole-log.js';
import { writeWholeLog } from '../log/sqlite-whole-log.js';
import { SqliteControlStore } from '../store/sqlite-control-store.js';

/** The log that control planes share in etcd, as the file of a server with a store of its own. */
export class EtcdLogCopy {
  readonly #store: EtcdLogStore;

  /** `prefix`: `/holdfast/CLUSTER/log/`. */
  constructor(client: EtcdClient, prefix: string) {
    this.#store = new EtcdLogStore(client, prefix);
  }

  /** A verified copy as of one moment, in a new file (0600). @throws AgentError `store.unavailable`, `log.corrupt` */
  async copyTo(file: string, options: CallOptions): Promise<{ readonly logId: LogId; readonly revision: Revision }> {
    const log = await readEtcdLog(this.#store, options);
    await writeWholeLog(file, log, options);
    return { logId: log.logId, revision: log.last.revision };
  }
}

/** A control plane's own state, as the file of a server with a store of its own. */
export class ControlStoreCopy {
  readonly #store: ControlStore;
  readonly #clock: Clock;

  constructor(store: ControlStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** As of one moment, in a new file (0600). @throws AgentError `store.*` */
  async copyTo(file: string, options: CallOptions): Promise<void> {
    const rows = await this.#store.list('', options);
    const copy = new SqliteControlStore({ file, clock: this.#clock });
    await copy.open(options);
    try {
      for (const writes of commitsOf(rows)) await copy.commit([], writes, options);
    } finally {
      await copy.close();
    }
  }
}

/** In the order in which they were written, as much in one commit as it takes. */
function commitsOf(rows: readonly StoredValue[]): readonly (readonly Write[])[] {
  const commits: Write[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const { key, value } of inOrder(rows)) {
    const more = key.length + Buffer.byteLength(value);
    const last = commits.at(-1);
    if (last === undefined || last.length >= MAX_OPERATIONS || bytes + more > MAX_COMMIT_BYTES) {
      commits.push([{ key, value }]);
      bytes = more;
    } else {
      last.push({ key, value });
      bytes += more;
    }
  }
  return commits;
}

export function inOrder(rows: readonly StoredValue[]): readonly StoredValue[] {
  return rows.toSorted((a, b) => (a.version < b.version ? -1 : 1));
}
