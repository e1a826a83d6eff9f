import { existsSync } from 'node:fs';
import { resolve } from 'node:path';

const DEV_DATA_DIR = '.holdfast';
const SYSTEM_SOCKET = '/run/holdfast/admin.sock';

/** Whom a verb asks: the daemon of the named data directory, else of ./.holdfast, else the machine's. */
export function adminSocket(dataDir: string | undefined, env: NodeJS.ProcessEnv): string {
  const named = dataDir ?? env.HOLDFAST_DATA_DIR;
  if (named !== undefined && named !== '') return socketIn(named);
  return existsSync(DEV_DATA_DIR) ? socketIn(DEV_DATA_DIR) : SYSTEM_SOCKET;
}

function socketIn(dataDir: string): string {
  return resolve(dataDir, 'admin', 'admin.sock');
}
