import { closeSync, openSync } from 'node:fs';
import { NativeTaskRunner } from '../../../../src/adapters/instruction/native-task-runner.js';
import { runnerPath } from '../../../../src/adapters/instruction/runner-process.js';
import { AgentError } from '../../../../src/domain/kernel/errors.js';
import { shell, taskId } from '../../../support/tasks.js';

/** Runs a task, uses up every descriptor, prints what is said of that task and of a new one, then what is said with descriptors. Arguments: RUNS. */
const [folder = ''] = process.argv.slice(2);
const options = { signal: new AbortController().signal };
const runner = new NativeTaskRunner({ folder, runnerPath: runnerPath(process.env.HOLDFAST_RUNNER) });
const said = (call: Promise<{ readonly kind: string }>) =>
  call.then(
    ({ kind }) => kind,
    (error: unknown) => (error instanceof AgentError ? error.code : String(error)),
  );
const ask = async () => [await said(runner.state(taskId('a'), options)), await said(runner.run(shell('b', 'exit 0'), options))];

await runner.run(shell('a', 'exit 0'), options);
const held: number[] = [];
try {
  for (;;) held.push(openSync('/dev/null', 'r'));
} catch {
  // None is left.
}
const without = await ask();
for (const descriptor of held) closeSync(descriptor);
console.log(JSON.stringify({ without, afterwards: await ask() }));
