import type { CallOptions } from '../call-options.js';

/** Keeps what is stored from being read, or moved to another name, without the key file. */
export interface Sealer {
  /** Id of the key that seals; older ones only open. */
  readonly keyId: string;
  /** Printable text, another one each time. `name`: the object's full name, under which alone it can be opened. */
  seal(name: string, text: string): string;
  /** @throws AgentError `store.key_wrong` when it was sealed with a key that is not there, `store.seal_broken` when it was changed or moved */
  open(name: string, sealed: string): string;
}

/** Where the keys are. All replicas have the same. */
export interface SealerKeys {
  /** `undefined` when there are none. @throws AgentError `store.key_unreadable` */
  load(options: CallOptions): Promise<Sealer | undefined>;
  /** A first key, unless there is one; durable when it resolves. On abort it was made or not. @throws AgentError `store.key_unreadable` */
  create(options: CallOptions): Promise<Sealer>;
}
