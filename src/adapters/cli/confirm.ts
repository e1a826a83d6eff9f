import { printable } from '../../domain/kernel/printable.js';
import { type CliContext, UsageError } from './context.js';

/** Whether a person at the terminal agrees. @throws UsageError when there is nobody to ask */
export async function isConfirmed({ console, stdin }: CliContext, what: string, consequence: string): Promise<boolean> {
  if (!console.interactive) throw new UsageError(`to ${what} needs --yes where nobody can be asked`);
  console.err(`${printable(`${what}? ${consequence}`)} [y/N] `);
  for await (const chunk of stdin) return /^y(es)?$/i.test(Buffer.from(chunk).toString().split('\n', 1)[0]?.trim() ?? '');
  return false;
}
