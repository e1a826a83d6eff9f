import type { Cursor, LogKey, Revision, Snapshot } from '../../domain/log/model.js';
import type { CallOptions } from '../call-options.js';

/** Whose view it is: another fleet's, or that of a former registration, is worth nothing. */
export interface ViewBinding {
  readonly fleet: string;
  readonly nid: string;
  readonly registration: string;
}

export interface StoredView extends Snapshot {
  /** When it was last known to be the present state, milliseconds since the Unix epoch. */
  readonly currentAt: number;
}

export interface ViewChange {
  readonly key: LogKey;
  /** `null`: the key was removed. */
  readonly value: string | null;
  readonly revision: Revision;
}

/** What leads from one stored view to the next. */
export interface ViewBatch extends Omit<StoredView, 'items'> {
  /** The cursor that is stored by now. */
  readonly previous: Cursor;
  readonly changes: readonly ViewChange[];
}

export interface OpenedView {
  /** Undefined when there is none that can be used. */
  readonly view: StoredView | undefined;
  /** Why what was there is gone: it was damaged, of another format, or another's. */
  readonly dropped: string | undefined;
}

/**
 * The last known state, kept on this node so that a restart serves it without the control plane. Everything in it can be had again, so
 * that what cannot be used is dropped and not mended. Calls are carried out one after the other.
 */
export interface ViewStore {
  /** To be called first; may be called again. @throws AgentError `log.view_not_written` when the disk lets nothing be kept or read */
  open(binding: ViewBinding, options: CallOptions): Promise<OpenedView>;

  /** In place of whatever is stored, in one step. @throws AgentError `log.view_not_written`; then the former one or none is stored */
  replace(view: StoredView, options: CallOptions): Promise<void>;

  /**
   * Cursor and changes in one step, which kill -9 does not undo. `false`: another view than `previous` is stored, or none, and only
   * `replace` helps. The same batch again after a failure does no harm.
   * @throws AgentError `log.view_not_written`: it is stored or not
   */
  append(batch: ViewBatch, options: CallOptions): Promise<boolean>;

  /** Safe before `open` and twice. */
  close(): Promise<void>;
}
