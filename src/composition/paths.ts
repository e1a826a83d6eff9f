import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { AgentError } from '../domain/kernel/errors.js';
import { type AbsolutePath, absolutePath, makePaths, type Paths } from '../domain/kernel/paths.js';

/** The paths that flags and environment ask for; relative ones are below the current folder. */
export function pathsOf(
  { dataDir, root }: { readonly dataDir: string | undefined; readonly root?: string | undefined },
  env: NodeJS.ProcessEnv,
  fallback: string,
): Paths {
  return makePaths({ root: absolute(root ?? '/'), dataDir: absolute(dataDir ?? (env.HOLDFAST_DATA_DIR || fallback)) });
}

/** Of the daemon whose files a verb reads when none is named: ./.holdfast when it is there, else the machine's. */
export function usualDataDir(): string {
  return existsSync('.holdfast') ? '.holdfast' : '/var/lib/holdfast';
}

/** Where other programs look for the node's current pair. */
export function flatPair({ certs }: Paths): { readonly ca: string; readonly certificate: string; readonly privateKey: string } {
  return { ca: `${certs}/ca.crt`, certificate: `${certs}/mtls.crt`, privateKey: `${certs}/mtls.key` };
}

function absolute(text: string): AbsolutePath {
  const path = absolutePath(resolve(text));
  if (path === undefined) throw new AgentError('config.invalid', { problem: `not a path: ${JSON.stringify(text)}` });
  return path;
}
