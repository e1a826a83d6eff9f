import { processConsole } from './adapters/cli/output.js';
import { runCli } from './adapters/cli/program.js';
import { processTerminal } from './adapters/cli/terminal.js';
import { version } from './composition/version.js';
import { localVerbs } from './main.js';

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    // Whoever asks twice does not want to wait for the drain.
    if (stop.signal.aborted) process.exit(130);
    stop.abort(new Error(signal));
  });
}
// The reader of a pipe may go first, `holdfast get | head`: that is no failure. A full disk behind `>` is.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  process.stderr.write(`error: standard output: ${error.message}\n`);
  process.exit(1);
});
// A daemon goes on when nobody reads what it says.
process.stderr.on('error', () => {});

const context = {
  console: processConsole(),
  env: process.env,
  stdin: process.stdin,
  terminal: processTerminal(),
  signal: stop.signal,
};
process.exitCode = await runCli(process.argv.slice(2), context, version, localVerbs);
// A terminal that is still being read would keep the process.
process.stdin.destroy();
