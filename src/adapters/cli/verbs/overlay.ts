import type { Command } from 'commander';
import { client, type Wiring } from './options.js';

/** What an agent takes over from its control plane without being told to. */
export function addSync(program: Command, { context, done }: Wiring): void {
  const sync = program
    .command('sync')
    .description('ask the control plane now for what this node asks for by itself every minute');
  client(sync.command('vpn').description('the peers of the overlay; exit code 4 when some of them are refused')).action(
    async (options) => done(await (await import('../overlay.js')).syncVpn(context, options)),
  );
}
