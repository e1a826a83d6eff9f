import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type HostPort, hostPort, portNumber } from '../../domain/kernel/network.js';

const DEV_DATA_DIR = '.holdfast';

/** Where `agent` and `server` keep their state unless told otherwise. */
export const SYSTEM_DATA_DIR = '/var/lib/holdfast';

/** Of the admin API, where a host is named without one. */
const ADMIN_PORT = 9194;

export interface TargetOptions {
  /** `host` or `host:port`. */
  readonly admin?: string;
  /** The folder of the certificate that is shown there. */
  readonly adminCert?: string;
  readonly dataDir?: string;
}

/** Whom a verb asks. */
export type Target =
  | { readonly way: 'socket'; readonly path: string }
  | { readonly way: 'remote'; readonly server: HostPort; readonly certificate: string }
  /** It cannot be known; a sentence for people. */
  | { readonly way: 'none'; readonly problem: string };

/** The server that is named, else the daemon of the named data directory, else of ./.holdfast, else of the machine's. */
export function targetOf({ admin, adminCert, dataDir }: TargetOptions, env: NodeJS.ProcessEnv): Target {
  const named = admin ?? (env.HOLDFAST_ADMIN || undefined);
  if (named !== undefined && dataDir !== undefined) {
    const other = admin === undefined ? 'HOLDFAST_ADMIN' : '--admin';
    return { way: 'none', problem: `--data-dir and ${other} name two daemons: leave one of them out` };
  }
  if (named !== undefined) return remote(named, adminCert ?? (env.HOLDFAST_ADMIN_CERT || undefined));
  const folder = dataDir ?? (env.HOLDFAST_DATA_DIR || undefined);
  return { way: 'socket', path: socketIn(folder ?? (existsSync(DEV_DATA_DIR) ? DEV_DATA_DIR : SYSTEM_DATA_DIR)) };
}

function remote(named: string, certificate: string | undefined): Target {
  const port = portNumber(ADMIN_PORT);
  const server = port === undefined ? undefined : hostPort(named, port);
  if (server === undefined) return { way: 'none', problem: `expected host or host:port for the control plane, found ${named}` };
  if (certificate === undefined) {
    return {
      way: 'none',
      problem: `to ask ${named}, name the folder of your certificate with --admin-cert or HOLDFAST_ADMIN_CERT`,
    };
  }
  return { way: 'remote', server, certificate: resolve(certificate) };
}

function socketIn(dataDir: string): string {
  return resolve(dataDir, 'admin', 'admin.sock');
}
