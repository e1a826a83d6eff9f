import type { IpAddress } from '../../domain/kernel/network.js';
import type { Observed, OverlayConfig, PeerFailure } from '../../domain/overlay/model.js';
import type { CallOptions } from '../call-options.js';

/**
 * The node's interface in the overlay. One call at a time. It outlives this process: whoever comes next finds it as it was left. Its private
 * key never leaves the machine.
 */
export interface OverlayDevice {
  /**
   * The whole of it, as it is now. The node's key is made at the first call, unless there is one or the interface has one.
   * @throws AgentError `overlay.unreadable` rather than a part of it, `overlay.key_unreadable`, `overlay.foreign`, `command.not_found`
   */
  observe(options: CallOptions): Promise<Observed>;

  /**
   * Makes it so, and the interface where there is none; the same again changes nothing. Peers that are neither in `peers` nor `untouched` are
   * removed. Nothing is removed when what there is cannot be read. Resolves with the peers that could not be set; all others are.
   * @throws AgentError as `observe`, `overlay.not_set`; on abort it is done in part
   */
  set(config: OverlayConfig, options: CallOptions): Promise<readonly PeerFailure[]>;

  /**
   * Takes the interface away that has this node's key, with its peers and routes, and what was let in from it. One with another key is
   * somebody else's, and stays. Absent is success. @throws AgentError as `observe`, `overlay.not_set`
   */
  remove(options: CallOptions): Promise<void>;

  /**
   * Whether a packet of this payload, unfragmented, is answered by an address of the overlay within 2 s; undefined where that cannot be
   * found out.
   */
  probe(address: IpAddress, payloadBytes: number, options: CallOptions): Promise<boolean | undefined>;
}
