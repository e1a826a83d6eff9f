import type { ApiBalancer } from '../generated/holdfast/admin/v1/node.js';
import { type CliContext, type ExitCode, exitCodes, type GlobalOptions, withClient } from './context.js';
import { structured, table } from './output.js';

/** Code 4 when it fails, or an API server is not up. */
export async function listBalanced(context: CliContext, options: GlobalOptions): Promise<ExitCode> {
  const { balancer } = await withClient(context, options, (client) => client.getApiBalancer(context));
  return shown(context, options, balancer);
}

/** As `listBalanced`, once the control plane has been asked. */
export async function refreshBalanced(context: CliContext, options: GlobalOptions): Promise<ExitCode> {
  const { balancer } = await withClient(context, options, (client) => client.refreshApiBalancer(context));
  return shown(context, options, balancer);
}

const nothing: ApiBalancer = { state: '', port: 0, servers: [], reloads: 0, changes: 0 };

function shown({ console }: CliContext, { output }: GlobalOptions, balancer: ApiBalancer = nothing): ExitCode {
  const { state, port, servers } = balancer;
  if (output !== 'table') console.out(structured(output, balancer));
  else if (state === 'absent') console.out('this machine has no HAProxy\n');
  else if (servers.length === 0) console.out('the control plane has named no API servers yet\n');
  else {
    const rows = servers.map((server) => [server.name, server.endpoint, server.state, String(server.sessions)]);
    console.out(table(['SERVER', 'ENDPOINT', 'STATE', 'CONNECTIONS'], rows));
    console.err(`balanced on port ${port}\n`);
  }
  const isWell = state !== 'failing' && servers.every((server) => server.state === 'up' || server.state === 'draining');
  return isWell ? exitCodes.done : exitCodes.degraded;
}
