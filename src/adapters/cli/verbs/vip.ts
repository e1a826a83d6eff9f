import type { Command } from 'commander';
import { client, type Wiring } from './options.js';

/** The virtual IPs of a control plane. */
export function addVipVerbs(program: Command, { context, done }: Wiring): void {
  const vip = program.command('vip').description('virtual IP of the control plane of each account: list, move');
  client(vip.command('list').description('who has it, and who may; exit code 4 when a node should have one and none has')).action(
    async (options) => done(await (await import('../vip.js')).listVips(context, options)),
  );
  client(
    vip.command('move <node>').description('give it to this node; it takes some seconds, and 36 when the present one is silent'),
  ).action(async (node, options) => done(await (await import('../vip.js')).moveVip(context, node, options)));
}
