import type { CallOptions } from '../call-options.js';

/** Archives of a control plane, for those who operate it. */
export interface Backups {
  /**
   * An archive of the log and of the control plane's own state, each as of one moment after the call was made, the log's the earlier one:
   * whatever node the log tells of, the state knows. With `withKey` also of the key that secrets in it are sealed with. It is whole
   * when the iteration ends without an error; serving goes on meanwhile. One at a time.
   * @throws AgentError `backup.busy`, `backup.not_made`
   */
  take(call: { readonly withKey: boolean }, options: CallOptions): AsyncIterable<Uint8Array>;
}
