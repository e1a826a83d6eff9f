import type { Vip } from '../generated/holdfast/admin/v1/fleet.js';
import { type CliContext, type ExitCode, exitCodes, type GlobalOptions, withClient } from './context.js';
import { age, structured, table } from './output.js';

/** Code 4 when one could be held and is not. */
export async function listVips(context: CliContext, options: GlobalOptions): Promise<ExitCode> {
  const { vips } = await withClient(context, options, (client) => client.listVips(context));
  const { console } = context;
  if (options.output !== 'table') console.out(structured(options.output, { vips }));
  else if (vips.length === 0) console.err('no node may have a virtual IP: `vip.candidates` of the control plane names none\n');
  else console.out(table(['ACCOUNT', 'PHASE', 'NODE', 'WANTED', 'GENERATION', 'SINCE', 'CANDIDATES'], vips.map(rowOf)));
  return vips.some(({ phase }) => phase !== 'held') ? exitCodes.degraded : exitCodes.done;
}

export async function moveVip(context: CliContext, node: string, options: GlobalOptions): Promise<ExitCode> {
  const { vip } = await withClient(context, options, (client) => client.moveVip({ node }, context));
  const words = vip?.wanted === node ? `goes to ${node}` : `is at ${node} already`;
  context.console.out(
    options.output === 'table' ? `the virtual IP of ${vip?.account ?? ''} ${words}\n` : structured(options.output, { vip }),
  );
  return exitCodes.done;
}

function rowOf({ account, phase, node, wanted, generation, sinceMs, candidates }: Vip): readonly string[] {
  const since = sinceMs === 0n ? '-' : age(Date.now() - Number(sinceMs));
  return [account, phase, node || '-', wanted || '-', String(generation), since, candidates.join(',') || '-'];
}
