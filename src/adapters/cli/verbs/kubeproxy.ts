import type { Command } from 'commander';
import { client, type Wiring } from './options.js';

/** The balancer of the cluster's API on an agent's machine. */
export function addKubeproxy(program: Command, { context, done }: Wiring): void {
  const kubeproxy = program.command('kubeproxy').description("the balancer of Kubernetes' API on this node: list, refresh");
  client(kubeproxy.command('list').description('the API servers and how each is; exit code 4 when one is not up')).action(
    async (options) => done(await (await import('../kubeproxy.js')).listBalanced(context, options)),
  );
  client(kubeproxy.command('refresh').description('ask the control plane for them now, and show them')).action(async (options) =>
    done(await (await import('../kubeproxy.js')).refreshBalanced(context, options)),
  );
}
