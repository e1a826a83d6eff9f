import type { AbsolutePath } from '../../domain/kernel/paths.js';
import type { CallOptions } from '../call-options.js';

/** What is left of a node in the file system. @throws AgentError `uninstall.not_removed` where the system refuses */
export interface Traces {
  /** Names in a folder, in no order; none where there is no folder. A link to a folder is none. */
  entries(folder: AbsolutePath, options: CallOptions): Promise<readonly string[]>;

  /**
   * A file, a link or a folder with all that is in it. Nothing is followed: neither a link, nor into a mount, below which nothing is
   * removed. Resolves when it is gone; absent is success.
   */
  remove(path: AbsolutePath, options: CallOptions): Promise<void>;

  /** A folder that holds nothing; every other stays. */
  removeEmptyFolder(path: AbsolutePath, options: CallOptions): Promise<void>;

  /** Mounts below `path`, the deepest first; `path` itself is none. @throws AgentError `uninstall.not_removed` when they cannot be read */
  mountsBelow(path: AbsolutePath, options: CallOptions): Promise<readonly AbsolutePath[]>;
}
