import { AgentError } from '../../src/domain/kernel/errors.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { Command, CommandResult, CommandRunner } from '../../src/ports/command/command-runner.js';

type Answer = Partial<CommandResult> | ((command: Command) => Partial<CommandResult> | Promise<Partial<CommandResult>>);

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
    const given = typeof known.answer === 'function' ? await known.answer(command) : known.answer;
    signal.throwIfAborted();
    return { exitCode: 0, timedOut: false, stdout: '', stderr: '', dropped: 0, ...given };
  }

  /** What was run, a line each. */
  dump(): string {
    return this.ran.map(({ argv }) => `${argv.join(' ')}\n`).join('');
  }
}
