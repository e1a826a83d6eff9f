import { isConfirmed } from './confirm.js';
import { type CliContext, type ExitCode, exitCodes, type GlobalOptions, withClient } from './context.js';
import { structured } from './output.js';

export interface RevokeOptions extends GlobalOptions {
  readonly yes: boolean;
  readonly reason: string;
}

const CONSEQUENCES = {
  node: 'Its node has to register again, with a token that replaces it.',
  person: 'Whoever has it is let in no more, and needs another.',
} as const;

/** Of a node's or a person's certificate. Asks first: nothing takes it back. */
export async function revoke(
  context: CliContext,
  whose: keyof typeof CONSEQUENCES,
  serial: string,
  options: RevokeOptions,
): Promise<ExitCode> {
  const { console } = context;
  if (!options.yes && !(await isConfirmed(context, `revoke certificate ${serial}`, CONSEQUENCES[whose]))) {
    console.err('nothing was changed\n');
    return exitCodes.failed;
  }
  const request = { serial, reason: options.reason };
  await withClient(context, options, (client) => client.revokeCertificate(request, context));
  if (options.output !== 'table') console.out(structured(options.output, { revoked: serial }));
  else console.out(`certificate/${serial} revoked\n`);
  return exitCodes.done;
}
