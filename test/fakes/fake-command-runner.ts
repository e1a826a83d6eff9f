import { AgentError } from '../../src/domain/kernel/errors.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { Command, CommandResult, CommandRunner } from '../../src/ports/command/command-runner.js';

/** `hang` never ends by itself. */
type Answer = 'hang' | Partial<CommandResult> | ((command: Command) => Partial<CommandResult> | Promise<Partial<CommandResult>>);

const TIMED_OUT: Partial<CommandResult> = { exitCode: -1, timedOut: true };

/** Programs that a test writes: the longest beginning of the argv that is known answers. One that nobody wrote is not on the machine. */
export class FakeCommandRunner implements CommandRunner {
  readonly ran: Command[] = [];
  readonly #programs: { readonly argv: readonly string[]; readonly answer: Answer }[] = [];

  /** The newest of the same argv stands. */
  program(argv: readonly string[], answer: Answer): void {
    this.#programs.unshift({ argv, answer });
  }

  async run(command: Command, { signal }: CallOptions): Promise<CommandResult> {
    signal.throwIfAborted();
    const [known] = this.#programs
      .filter(({ argv }) => argv.every((part, at) => part === command.argv[at]))
      .toSorted((a, b) => b.argv.length - a.argv.length);
    if (known === undefined) throw new AgentError('command.not_found', { program: command.argv[0] });
    this.ran.push(command);
    const given = await this.#answer(known.answer, command, signal);
    signal.throwIfAborted();
    const { stdout = '', stderr = '', dropped = 0 } = given;
    const [out, err] = [stdout, stderr].map((text) => capped(text, command.maxOutputBytes ?? 1024 * 1024));
    return {
      exitCode: given.exitCode ?? 0,
      timedOut: given.timedOut ?? false,
      stdout: out?.text ?? '',
      stderr: err?.text ?? '',
      dropped: dropped + (out?.dropped ?? 0) + (err?.dropped ?? 0),
    };
  }

  /** What was run, a line each. */
  dump(): string {
    return this.ran.map(({ argv }) => `${argv.join(' ')}\n`).join('');
  }

  async #answer(answer: Answer, command: Command, signal: AbortSignal): Promise<Partial<CommandResult>> {
    if (answer !== 'hang') return typeof answer === 'function' ? answer(command) : answer;
    const { promise, resolve, reject } = Promise.withResolvers<Partial<CommandResult>>();
    const timer = setTimeout(() => resolve(TIMED_OUT), command.timeoutMs);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    return promise.finally(() => clearTimeout(timer));
  }
}

function capped(text: string, bytes: number): { readonly text: string; readonly dropped: number } {
  const all = new TextEncoder().encode(text);
  const dropped = Math.max(0, all.length - bytes);
  return { text: new TextDecoder().decode(all.subarray(0, bytes), { stream: dropped > 0 }), dropped };
}
