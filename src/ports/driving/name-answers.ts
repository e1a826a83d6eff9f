/** By UDP an answer is cut to what the asker takes. */
export type DnsTransport = 'udp' | 'tcp';

/** What this node knows of names, for those who ask by DNS. */
export interface NameAnswers {
  /**
   * The answer to a message as it came; undefined when none is to be sent. Never throws, whatever came.
   */
  answer(query: Uint8Array, transport: DnsTransport): Uint8Array | undefined;
}
