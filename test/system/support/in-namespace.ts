import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { NetworkSpace } from './fleet-network.js';

const run = promisify(execFile);

/** What the program has said. Rejects with what it said of its failure. */
export async function inNamespace({ name }: NetworkSpace, argv: readonly string[]): Promise<string> {
  const { stdout } = await run('ip', ['netns', 'exec', name, ...argv], { maxBuffer: 64 * 1024 * 1024, timeout: 30_000 });
  return stdout;
}
