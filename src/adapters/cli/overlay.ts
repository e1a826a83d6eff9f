import { type CliContext, type ExitCode, exitCodes, type GlobalOptions, withClient } from './context.js';
import { structured, table } from './output.js';

/** Code 4 when peers are not as they were declared. */
export async function syncVpn(context: CliContext, options: GlobalOptions): Promise<ExitCode> {
  const { console } = context;
  const { address, peers, failed } = await withClient(context, options, (client) => client.syncOverlay(context));
  if (options.output !== 'table') console.out(structured(options.output, { address, peers, failed }));
  else if (address === '') console.out('the control plane has no overlay\n');
  else console.out(`${address} has ${peers} peers\n`);
  if (failed.length === 0) return exitCodes.done;
  const rows = failed.map(({ publicKey, reason }) => [publicKey, reason]);
  if (options.output === 'table') console.err(table(['REFUSED PEER', 'REASON'], rows));
  return exitCodes.degraded;
}
