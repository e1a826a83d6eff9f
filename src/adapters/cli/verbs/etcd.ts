import type { Command } from 'commander';
import { client, type Wiring } from './options.js';

/** What is asked of the agent of a machine of Kubernetes' control plane. */
export function addEtcdVerbs(program: Command, { context, done }: Wiring): void {
  const etcd = program.command('etcd').description("members of Kubernetes' etcd: list, remove, add, promote");
  client(etcd.command('list').description('the members and how each is; exit code 4 when one is not healthy')).action(
    async (options) => done(await (await import('../etcd.js')).listMembers(context, options)),
  );
  client(etcd.command('remove <id>').description('remove a member; a leader hands over first, and the quorum stays'))
    .option('--yes', 'do not ask', false)
    .action(async (id, options) => done(await (await import('../etcd.js')).removeMember(context, id, options)));
  client(etcd.command('add <peer-url>').description('add a member that has no vote yet')).action(async (url, options) =>
    done(await (await import('../etcd.js')).addMember(context, url, options)),
  );
  client(etcd.command('promote <id>').description('give a member that has caught up its vote')).action(async (id, options) =>
    done(await (await import('../etcd.js')).promoteMember(context, id, options)),
  );
}
