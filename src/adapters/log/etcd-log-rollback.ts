import { randomUUID } from 'node:crypto';
import { AgentError } from '../../domain/kernel/errors.js';
import { type LogId, logId, type Revision, revision } from '../../domain/log/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { EtcdClient } from '../etcd/etcd-client.js';
import { checkSeen, EtcdLogMemory } from './etcd-log-memory.js';
import { EtcdLogStore } from './etcd-log-store.js';

/** What a machine has seen of a log, and what etcd holds of it. */
export interface Rollback {
  readonly seen: { readonly logId: LogId; readonly revision: Revision };
  readonly held: { readonly logId: LogId; readonly revision: Revision };
}

export interface EtcdLogRollbackOptions {
  readonly client: EtcdClient;
  /** What all keys begin with, as `/holdfast/CLUSTER/log/`. */
  readonly prefix: string;
  /** As that of `EtcdOrderedLog`, which must not be open on it. */
  readonly witness: string;
}

/** A log in etcd that is behind what this machine has seen, and how it is taken all the same (engine.md E3). */
export class EtcdLogRollback {
  readonly #store: EtcdLogStore;
  readonly #memory: EtcdLogMemory;

  constructor({ client, prefix, witness }: EtcdLogRollbackOptions) {
    this.#store = new EtcdLogStore(client, prefix);
    this.#memory = new EtcdLogMemory(witness);
  }

  /**
   * Undefined when the log can be served as it is.
   * @throws AgentError `store.unavailable`, `log.corrupt`, `log.newer_schema`; `log.rolled_back` when etcd holds no log at all
   */
  async find(options: CallOptions): Promise<Rollback | undefined> {
    const seen = this.#memory.read();
    if (seen === undefined) return undefined;
    const { head } = await this.#tail(options);
    try {
      checkSeen(seen, head, await this.#store.former(options));
      return undefined;
    } catch (error) {
      if (!(error instanceof AgentError) || error.code !== 'log.rolled_back') throw error;
      return { seen, held: { logId: head.logId, revision: head.last.revision } };
    }
  }

  /**
   * Writes a new log id, with which every cursor of before ends with `log.changed`. Others that have seen the former log need not accept
   * anything: they go on when they are started again.
   * @throws AgentError `log.not_written` when somebody wrote meanwhile; as `find`
   */
  async accept({ seen, held }: Rollback, options: CallOptions): Promise<LogId> {
    const tail = await this.#tail(options);
    const isSame = tail.head.logId === held.logId && tail.head.last.revision === held.revision;
    const id = logId(randomUUID());
    const former = new Set([...(await this.#store.former(options)), seen.logId, held.logId]);
    const isDone = isSame && (await this.#store.rename(tail, id, [...former], options));
    if (!isDone)
      throw new AgentError('log.not_written', {
        problem: 'the log in etcd was changed meanwhile',
        remedy: 'stop every server that uses it, then run this again',
      });
    this.#memory.write(id, tail.head.last);
    this.#memory.close();
    return id;
  }

  #tail(options: CallOptions) {
    return this.#store.tail(revision(0n), options);
  }
}
