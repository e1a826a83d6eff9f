import type { AbsolutePath } from '../../domain/kernel/paths.js';
import type { CallOptions } from '../call-options.js';

export interface NewFile {
  readonly path: AbsolutePath;
  readonly text: string;
  /** Permission bits: 0o600. */
  readonly mode: number;
}

/** Small text files of this machine that other programs read too. One writer at a time. */
export interface MachineFiles {
  /**
   * Undefined when there is none.
   * @throws AgentError `adoption.file_failed` when it is no regular file of UTF-8 of 1 MiB at most, or cannot be read
   */
  read(path: AbsolutePath, options: CallOptions): Promise<string | undefined>;

  /**
   * Puts every file in place, in the order given, and makes the folders above that are missing. All of them are written and synced before
   * the first is put in place; each is the old or the new one at every moment, also after a crash. Durable when it resolves; the same
   * again changes nothing.
   * @throws AgentError `adoption.file_failed`: some may be in place
   */
  replace(files: readonly NewFile[], options: CallOptions): Promise<void>;

  /** Durable when it resolves. Absent is success. @throws AgentError `adoption.file_failed` */
  remove(path: AbsolutePath, options: CallOptions): Promise<void>;

  /** Removes a folder that holds nothing; every other stays. @throws AgentError `adoption.file_failed` */
  removeEmptyFolder(path: AbsolutePath, options: CallOptions): Promise<void>;
}
