import { GrpcAdminClient } from '../admin/grpc-admin-client.js';
import type { Console, OutputFormat } from './output.js';
import { type TargetOptions, targetOf } from './target.js';
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
export interface GlobalOptions extends TargetOptions {
  readonly output: OutputFormat;
}

/** A command line that asks for nothing that there is; the message is for people. */
export class UsageError extends Error {}

/** Exit codes of every verb. */
export const exitCodes = { done: 0, failed: 1, usage: 2, unreachable: 3, degraded: 4 } as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Runs `use` with a client of the daemon that the options name. */
export async function withClient<T>(
  context: CliContext,
  options: GlobalOptions,
  use: (client: GrpcAdminClient) => Promise<T>,
): Promise<T> {
  const client = await clientOf(context, options);
  try {
    return await use(client);
  } finally {
    client.close();
  }
}

/** @throws UsageError; AgentError as the client, `certificate.unusable` */
async function clientOf(context: CliContext, options: GlobalOptions): Promise<GrpcAdminClient> {
  const target = targetOf(options, context.env);
  switch (target.way) {
    case 'none':
      throw new UsageError(target.problem);
    case 'socket':
      return new GrpcAdminClient(target.path);
    case 'remote': {
      const { readAdminPair } = await import('../certificate/admin-pair-folder.js');
      const pair = await readAdminPair(target.certificate, context);
      return new GrpcAdminClient({ ...target.server, pair });
    }
  }
}
