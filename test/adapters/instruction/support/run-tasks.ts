import { NativeTaskRunner } from '../../../../src/adapters/instruction/native-task-runner.js';
import { runnerPath } from '../../../../src/adapters/instruction/runner-process.js';
import { AgentError } from '../../../../src/domain/kernel/errors.js';
import { shell } from '../../../support/tasks.js';

/**
 * An agent of sorts, to be killed at any moment: runs a script for each of COUNT tasks, three at a time, and prints how each ended as JSON.
 * In the script, `$TASK` is the number. Arguments: RUNS COUNT SCRIPT MAX_OUTPUT_BYTES.
 */
const [folder = '', count = '', script = '', maxOutput = ''] = process.argv.slice(2);
const options = { signal: new AbortController().signal };
const runner = new NativeTaskRunner({ folder, runnerPath: runnerPath(process.env.HOLDFAST_RUNNER) });
const ends: unknown[] = [];
let next = 0;

async function runSome(): Promise<void> {
  while (next < Number(count)) {
    const number = next;
    next += 1;
    const env = { PATH: '/usr/bin:/bin', TASK: String(number) };
    const rest = { env, maxOutputBytes: Number(maxOutput) };
    ends[number] = await runner.run(shell(`task ${number}`, script, rest), options).then(
      ({ exitCode, signal, stdout }) => ({ exitCode, signal, kept: stdout.bytes.length, dropped: stdout.dropped }),
      (error: unknown) => (error instanceof AgentError ? error.code : String(error)),
    );
  }
}

await Promise.all([runSome(), runSome(), runSome()]);
console.log(JSON.stringify(ends));
