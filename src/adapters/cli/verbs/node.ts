import type { Command } from 'commander';
import { client, scoped, type Wiring } from './options.js';

/** What is asked of an agent. */
export function addAgentVerbs(program: Command, { context, done }: Wiring): void {
  client(
    program.command('resync').description('take the whole state from the control plane anew; exit code 1 when it is held back'),
  )
    .option('--accept', 'take it over whatever it removes, also what is held back already', false)
    .option('--timeout <duration>', 'how long to wait for the control plane, 110s at most', '30s')
    .action(async (options) => done(await (await import('../agent.js')).resync(context, options)));
  client(program.command('journal').description('the instructions that this node knows, and how far each is')).action(
    async (options) => done(await (await import('../agent.js')).journal(context, options)),
  );
}

export function addOperations(program: Command, { context, done }: Wiring): void {
  client(
    program.command('status').description('how the daemon is, what is wrong and what to do; exit code 4 when degraded'),
  ).action(async (options) => done(await (await import('../operations.js')).status(context, options)));
  client(program.command('events').description('what happened'))
    .option('-w, --watch', 'go on with new ones', false)
    .action(async (options) => done(await (await import('../operations.js')).events(context, options)));
  scoped(client(program.command('top').description('traffic per service port')))
    .option('--once', 'print once, also on a terminal', false)
    .action(async (options) => done(await (await import('../operations.js')).top(context, options)));
}
