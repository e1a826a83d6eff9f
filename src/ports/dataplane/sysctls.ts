import type { CallOptions } from '../call-options.js';

/** Settings of the kernel, by name (`net.ipv4.ip_forward`), as text without white space at its ends. */
export interface Sysctls {
  /** Without those that this kernel does not have. */
  read(names: readonly string[], options: CallOptions): Promise<ReadonlyMap<string, string>>;

  /**
   * Each as given. What one was before it was set for the first time is on disk before it is changed, and outlives the process. One that
   * stands as given already is left alone and not remembered.
   * @throws AgentError `dataplane.sysctl_not_set`
   */
  set(wanted: ReadonlyMap<string, string>, options: CallOptions): Promise<void>;

  /** Each that still is as `set` has left it becomes what it was before; then nothing is remembered. Twice is well. @throws as `set` */
  restore(options: CallOptions): Promise<void>;
}
