import type { OverlayPlanned } from '../overlay/plan.js';

/** What is to be done, for the shell to do. */
export type Plan =
  | { readonly do: 'report_status' }
  | ScriptPlan
  | WebPlan
  | OverlayPlanned
  | { readonly do: 'restart_service'; readonly delaySeconds: number };

export interface ScriptPlan {
  readonly do: 'run_script';
  readonly script: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly timeoutMs: number;
  /** It is answered as soon as it runs, and its end is not reported. */
  readonly background: boolean;
  /** Of the body, in hex; another body is refused. */
  readonly sha256: string | undefined;
}

export interface WebPlan {
  readonly do: 'web_request';
  readonly url: string;
  readonly method: string;
  readonly body: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}
