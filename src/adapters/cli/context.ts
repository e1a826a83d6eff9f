import { GrpcAdminClient } from '../admin/grpc-admin-client.js';
import type { Console, OutputFormat } from './output.js';
import { adminSocket } from './target.js';
import type { Terminal } from './terminal.js';

/** What every verb is given. */
export interface CliContext {
  readonly console: Console;
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: AsyncIterable<Uint8Array>;
  /** Undefined where standard input or output is none. */
  readonly terminal?: Terminal | undefined;
  /** Aborted by SIGINT or SIGTERM. */
  readonly signal: AbortSignal;
}

/** Options that every verb has. */
export interface GlobalOptions {
  readonly dataDir?: string;
  readonly output: OutputFormat;
}

/** A command line that asks for nothing that there is; the message is for people. */
export class UsageError extends Error {}

/** Exit codes of every verb. */
export const exitCodes = { done: 0, failed: 1, usage: 2, unreachable: 3, degraded: 4 } as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Runs `use` with a client of the daemon that the options name. */
export async function withClient<T>(
  { env }: CliContext,
  { dataDir }: GlobalOptions,
  use: (client: GrpcAdminClient) => Promise<T>,
): Promise<T> {
  const client = new GrpcAdminClient(adminSocket(dataDir, env));
  try {
    return await use(client);
  } finally {
    client.close();
  }
}
