import { describe, expect, test } from 'vitest';
import type { Command, CommandRunner } from '../../src/ports/command/command-runner.js';

const options = { signal: new AbortController().signal };

export interface CommandRunnerRig {
  readonly runner: CommandRunner;
  /** Prints its arguments to stdout and what it reads to stderr, and ends with the code. */
  readonly echo: (exitCode: number) => Promise<Command['argv']>;
  /** Never ends by itself. */
  readonly hang: () => Promise<Command['argv']>;
}

/** Every CommandRunner must pass. */
export function commandRunnerContract(name: string, make: () => Promise<CommandRunnerRig>): void {
  describe(`CommandRunner: ${name}`, () => {
    test('gives both streams and the exit code, also of one that fails', async () => {
      const { runner, echo } = await make();
      const argv = await echo(3);
      const ended = await runner.run({ argv: [...argv, 'a b', '*'], stdin: 'secret é', timeoutMs: 10_000 }, options);
      expect(ended).toEqual({ exitCode: 3, timedOut: false, stdout: 'a b *', stderr: 'secret é', dropped: 0 });
    });

    test('reads nothing unless something is given', async () => {
      const { runner, echo } = await make();
      const ended = await runner.run({ argv: await echo(0), timeoutMs: 10_000 }, options);
      expect(ended).toEqual({ exitCode: 0, timedOut: false, stdout: '', stderr: '', dropped: 0 });
    });

    test('keeps of each stream what fits whole, and counts the rest', async () => {
      const { runner, echo } = await make();
      const command: Command = { argv: [...(await echo(0)), 'ééé'], stdin: '12345678', timeoutMs: 10_000, maxOutputBytes: 5 };
      expect(await runner.run(command, options)).toEqual({
        exitCode: 0,
        timedOut: false,
        stdout: 'éé',
        stderr: '12345',
        dropped: 4,
      });
    });

    test('a program that the machine does not have is named', async () => {
      const { runner } = await make();
      for (const program of ['holdfast-has-no-such-program', '/nowhere/program']) {
        await expect(runner.run({ argv: [program], timeoutMs: 1_000 }, options)).rejects.toEqual(
          expect.objectContaining({ code: 'command.not_found', message: expect.stringContaining(program) }),
        );
      }
    });

    test('throws the reason of an abort, before and while it runs', async () => {
      const { runner, hang } = await make();
      const command: Command = { argv: await hang(), timeoutMs: 60_000 };
      await expect(runner.run(command, { signal: AbortSignal.abort('enough') })).rejects.toBe('enough');
      const abort = new AbortController();
      const running = runner.run(command, { signal: abort.signal });
      setTimeout(() => abort.abort('enough'), 50);
      await expect(running).rejects.toBe('enough');
    });

    test('ends what takes too long', async () => {
      const { runner, hang } = await make();
      const ended = await runner.run({ argv: await hang(), timeoutMs: 50 }, options);
      expect(ended).toEqual({ exitCode: -1, timedOut: true, stdout: '', stderr: '', dropped: 0 });
    });

    test('any number at once', async () => {
      const { runner, echo } = await make();
      const argv = await echo(0);
      const words = Array.from({ length: 20 }, (_, at) => `word-${at}`);
      const ended = await Promise.all(words.map((word) => runner.run({ argv: [...argv, word], timeoutMs: 20_000 }, options)));
      expect(ended.map(({ stdout }) => stdout)).toEqual(words);
    });
  });
}
