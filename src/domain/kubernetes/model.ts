import type { Answer } from '../instruction/model.js';
import { cutForJson, cutTwoForJson, MAX_TEXTS_JSON } from '../instruction/text.js';

/** What is done to a cluster by this node's kubectl. */
export type KubernetesPlan =
  | { readonly do: 'kubernetes_apply'; readonly yaml: string; readonly timeoutMs: number }
  | { readonly do: 'kubernetes_delete'; readonly resource: string; readonly id: string; readonly timeoutMs: number }
  /** May be repeated. */
  | { readonly do: 'kubectl'; readonly argv: readonly string[]; readonly verb: string; readonly timeoutMs: number }
  | KubectlTask;

/** May run only once: it has a runner, and goes on when this process dies. */
export interface KubectlTask {
  readonly do: 'kubectl_once';
  readonly argv: readonly string[];
  readonly timeoutMs: number;
}

/** How a program ended. */
export interface ProgramEnd {
  readonly exitCode: number;
  readonly timedOut: boolean;
  readonly stdout: string;
  readonly stderr: string;
  /** Bytes that were not kept. */
  readonly dropped: number;
}

/** kubectl's `diff` says with 1 that there are differences. */
const DIFFERENCES = 1;

/** Of RUN_KUBECTL_COMMAND: what it printed; its failure is an error with what it said. */
export function kubectlAnswer(end: ProgramEnd, verb: string): Answer {
  const isDone = end.exitCode === 0 || (verb === 'diff' && end.exitCode === DIFFERENCES && end.stdout !== '');
  if (!isDone) return { kind: 'error', text: failureText('kubectl', end) };
  const text = end.stdout === '' ? end.stderr : end.stdout;
  return {
    kind: 'json',
    type: 'KUBECTL_COMMAND_RESPONSE',
    value: { response: cutForJson(text, MAX_TEXTS_JSON, end.dropped) },
  };
}

/** `kubectl: exit code 1: error: …`; within what an error may hold. */
export function failureText(program: string, { exitCode, timedOut, stdout, stderr, dropped }: ProgramEnd): string {
  const [said] = cutTwoForJson(
    { text: (stderr.trim() === '' ? stdout : stderr).trim(), dropped },
    { text: '', dropped: 0 },
    MAX_SAID_BYTES,
  );
  if (timedOut) return `${program}: it was ended as it took too long: ${said}`;
  return `${program}: ${exitCode < 0 ? 'it was killed' : `exit code ${exitCode}`}${said === '' ? '' : `: ${said}`}`;
}

const MAX_SAID_BYTES = 32 * 1024;
