import type { CallOptions } from '../call-options.js';

/** A program of this machine that ends by itself. No shell, and nothing of our environment but what is given. */
export interface Command {
  /** The program (a name is looked for in the machine's system folders, or an absolute path) and its arguments. Never a secret: everybody sees them. */
  readonly argv: readonly [string, ...string[]];
  /** Beside PATH, HOME and LANG. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** What it reads, the way for secrets; nothing unless given. */
  readonly stdin?: string | undefined;
  /** Its whole process group is killed when it is over. */
  readonly timeoutMs: number;
  /** Kept of each stream, 1 MiB unless given; the rest is dropped and counted. */
  readonly maxOutputBytes?: number | undefined;
}

export interface CommandResult {
  /** 0 to 255; -1 when it was killed. */
  readonly exitCode: number;
  readonly timedOut: boolean;
  /** UTF-8; what is none has U+FFFD in its place. */
  readonly stdout: string;
  readonly stderr: string;
  /** Bytes of both streams that were not kept. */
  readonly dropped: number;
}

/**
 * Runs programs that only read, or whose effect may be repeated. What must survive this process, or run once, goes to the TaskRunner
 * instead (engine.md A4).
 */
export interface CommandRunner {
  /**
   * Resolves when it has ended, also when it failed: what an exit code means is the caller's to know. Any number at once. On abort the
   * whole group is killed and it throws the reason.
   * @throws AgentError `command.not_found`: this machine does not have the program; `command.not_started`
   */
  run(command: Command, options: CallOptions): Promise<CommandResult>;
}
