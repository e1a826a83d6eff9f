import type { PlacedAddress } from '../../domain/vip/model.js';

/** What others say of the address on its link, from `watch` on. */
export interface ClaimWatch {
  /** Asks who has it. Nobody's memory changes by that (RFC 5227 section 2.1.1). @throws AgentError `vip.not_set` */
  probe(): void;
  /** The MAC of another machine that has said since the last call that the address is its own. */
  claim(): string | undefined;
  /** Safe twice. */
  close(): void;
}

/**
 * One address, which this machine has or has not. Every call is done when it returns: nothing else runs between a decision and the kernel.
 * All need CAP_NET_ADMIN, the link's ones CAP_NET_RAW.
 */
export interface VirtualAddress {
  /** Wherever it stands. @throws AgentError `vip.not_set` */
  find(): readonly PlacedAddress[];

  /**
   * The machine has it until `until` on the boot-time clock, rounded down to seconds; then the kernel takes it away, whatever has become
   * of this process. Again, it has another end. False where less than a second is left: nothing was done.
   * @throws AgentError `vip.no_interface`, `vip.not_set`
   */
  lease(until: number): boolean;

  /** From wherever it stands; nothing where it is not. @throws AgentError `vip.not_set` */
  remove(): void;

  /** Tells the neighbours once that it is here; nothing on a link without neighbours. @throws AgentError `vip.no_interface`, `vip.not_set` */
  announce(): void;

  /** @throws AgentError `vip.no_interface`, `vip.not_set` */
  watch(): ClaimWatch;
}
