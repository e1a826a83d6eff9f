import type { DnsmasqMemory, PlacedConfig } from '../../domain/dnsmasq/model.js';
import type { CallOptions } from '../call-options.js';

/** The one file of dnsmasq's configuration that is ours, and what is remembered of it. */
export interface DnsmasqConfig {
  /** Undefined when there is none. @throws AgentError `dnsmasq.unusable`: something else stands there, or it cannot be read */
  read(options: CallOptions): Promise<PlacedConfig | undefined>;

  /**
   * What dnsmasq itself has against such a file, undefined when it takes it. Nothing that it serves changes.
   * @throws AgentError `command.*`: dnsmasq cannot be asked
   */
  test(contents: Uint8Array, options: CallOptions): Promise<string | undefined>;

  /**
   * Puts it in place whole, or with undefined takes away what is there. Durable when it resolves; on abort, failure or a crash the old or
   * the new content is there. dnsmasq learns of it when it is restarted.
   * @throws AgentError `dnsmasq.unusable`
   */
  place(contents: Uint8Array | undefined, options: CallOptions): Promise<void>;

  /** Empty when there is none, or what is there cannot be read: then nothing is taken for served. */
  remembered(options: CallOptions): Promise<DnsmasqMemory>;

  /** Durable when it resolves. @throws AgentError `dnsmasq.unusable` */
  remember(memory: DnsmasqMemory, options: CallOptions): Promise<void>;
}
