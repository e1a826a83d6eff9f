import type { CallOptions } from '../call-options.js';

export interface WebRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** From the first name lookup to the last byte. */
  readonly timeoutMs: number;
  /** A larger answer is an error, never a part of it. */
  readonly maxBytes: number;
  /** Whether targets that only this machine can reach are refused (loopback, link-local, metadata …). */
  readonly guarded: boolean;
}

export interface WebResponse {
  /** 100 to 599; any of them is an answer. */
  readonly status: number;
  readonly body: Uint8Array;
}

/** HTTP and HTTPS to elsewhere. TLS is always verified; the connection goes to the very address that was judged, redirects are judged again. */
export interface WebClient {
  /**
   * @throws AgentError `outbound.refused` (the guard, before a byte was sent), `outbound.failed` (with the cause), `outbound.timed_out`,
   * `outbound.too_large`
   */
  request(request: WebRequest, options: CallOptions): Promise<WebResponse>;

  /**
   * Whether the guard lets a program of this machine go to `url` by itself: its name is looked up, and nothing is sent.
   * @throws AgentError `outbound.refused`, `outbound.failed` when the name has no address
   */
  judge(url: string, options: CallOptions): Promise<void>;
}
