import { existsSync } from 'node:fs';
import { resolve } from 'node:path';

const DEV_DATA_DIR = '.holdfast';

/** Where `agent` and `server` keep their state unless told otherwise. */
export const SYSTEM_DATA_DIR = '/var/lib/holdfast';

/** Whom a verb asks: the daemon of the named data directory, else of ./.holdfast, else of the machine's. */
export function adminSocket(dataDir: string | undefined, env: NodeJS.ProcessEnv): string {
  const named = dataDir ?? env.HOLDFAST_DATA_DIR;
  if (named !== undefined && named !== '') return socketIn(named);
  return socketIn(existsSync(DEV_DATA_DIR) ? DEV_DATA_DIR : SYSTEM_DATA_DIR);
}

function socketIn(dataDir: string): string {
  return resolve(dataDir, 'admin', 'admin.sock');
}
