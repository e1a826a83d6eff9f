import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Runs the openssl program and gives what it printed. Arguments are split at spaces: paths here have none. */
export async function openssl(command: string): Promise<string> {
  try {
    const { stdout, stderr } = await promisify(execFile)('openssl', command.split(' '));
    return `${stdout}${stderr}`;
  } catch (error) {
    const printed = error instanceof Error && 'stderr' in error ? String(error.stderr) : '';
    throw new Error(`openssl ${command}: ${printed}`, { cause: error });
  }
}
