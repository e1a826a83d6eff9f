import { Readable } from 'node:stream';
import type { ExitCode } from '../../src/adapters/cli/context.js';
import type { LocalVerbs } from '../../src/adapters/cli/local-verbs.js';
import { runCli } from '../../src/adapters/cli/program.js';
import type { Terminal } from '../../src/adapters/cli/terminal.js';
import { adminRig } from './admin-rig.js';

export interface Ran {
  readonly code: ExitCode;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions {
  readonly stdin?: string;
  readonly signal?: AbortSignal;
  readonly env?: NodeJS.ProcessEnv;
  readonly interactive?: boolean;
  /** Gets what is written to standard output so far. */
  readonly onOut?: (out: string) => void;
  readonly local?: Partial<LocalVerbs>;
  readonly terminal?: Terminal;
  /** Instead of `stdin`. */
  readonly input?: AsyncIterable<Uint8Array>;
}

/** One command line, with what it wrote. */
export async function run(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const {
    stdin = '',
    signal = new AbortController().signal,
    env = {},
    interactive = false,
    onOut = () => {},
    local = {},
    terminal,
    input = Readable.from([Buffer.from(stdin)]),
  } = options;
  const written = { out: '', err: '' };
  const console = {
    out: (text: string) => {
      written.out += text;
      onOut(written.out);
    },
    err: (text: string) => {
      written.err += text;
    },
    write: async (bytes: Uint8Array) => {
      written.out += Buffer.from(bytes).toString();
      onOut(written.out);
    },
    colour: false,
    interactive,
  };
  const unexpected = () => Promise.reject(new Error('not part of this test'));
  const daemons = { dev: unexpected, agent: unexpected, server: unexpected, acceptRollback: unexpected, register: unexpected };
  const verbs = {
    ...daemons,
    adopt: unexpected,
    install: unexpected,
    preflight: unexpected,
    restore: unexpected,
    uninstall: unexpected,
    verifyAudit: unexpected,
    ...local,
  };
  const context = { console, env, stdin: input, signal, terminal };
  const code = await runCli(args, context, '1.2.3', verbs);
  return { code, ...written };
}

/** A daemon's admin API and a CLI that asks it. */
export async function cliRig() {
  const rig = await adminRig();
  await rig.server.start();
  const cli = (args: readonly string[], options?: RunOptions) => run([...args, '--data-dir', rig.dataDir], options);
  return { ...rig, cli };
}
