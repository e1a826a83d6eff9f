import { AgentError } from '../../domain/kernel/errors.js';
import type { EntryHead } from '../../domain/log/entry.js';
import type { LogId } from '../../domain/log/model.js';
import type { HeadRecord } from './etcd-log-records.js';
import { readWitness, Witness, type Witnessed } from './sqlite-log-witness.js';

/**
 * The newest revision that this machine has seen, in a file of its own. A cluster that is restored from an older snapshot keeps its id and
 * goes back in revisions, which nothing in it tells (engine.md E3).
 */
export class EtcdLogMemory {
  readonly #file: string;
  readonly #witness: Witness;

  /** `file` in a folder that exists. */
  constructor(file: string) {
    this.#file = file;
    this.#witness = new Witness(file);
  }

  read(): Witnessed | undefined {
    return readWitness(this.#file);
  }

  write(id: LogId, last: EntryHead): void {
    this.#witness.write(id, last);
  }

  close(): void {
    this.#witness.close();
  }
}

/**
 * @param former ids that the log had before rollbacks were accepted: what was seen under them may be gone
 * @throws AgentError `log.rolled_back` when the log is behind what was seen, has another past, or is another one
 */
export function checkSeen(seen: Witnessed | undefined, { logId, last }: HeadRecord, former: readonly LogId[]): void {
  if (seen === undefined || (seen.logId !== logId && former.includes(seen.logId))) return;
  const isBehind = last.revision < seen.revision;
  const isForked = last.revision === seen.revision && last.digest !== seen.digest;
  if (seen.logId === logId && !isBehind && !isForked) return;
  const problem = `etcd holds log ${logId} up to ${last.revision}, but this machine has seen ${seen.logId} up to ${seen.revision}`;
  throw new AgentError('log.rolled_back', { problem });
}
