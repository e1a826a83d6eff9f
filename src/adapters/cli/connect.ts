import { printable } from '../../domain/kernel/printable.js';
import type { AdminSession } from '../admin/admin-session.js';
import type { SessionClosed, SessionStart } from '../generated/holdfast/admin/v1/fleet.js';
import { type CliContext, type ExitCode, exitCodes, type GlobalOptions, UsageError, withClient } from './context.js';
import { paint } from './output.js';

export interface ConnectOptions extends Pick<GlobalOptions, 'dataDir'> {
  readonly header?: readonly string[];
}

/** Ctrl-], as in telnet: in a raw terminal every other key is the session's. */
const ESCAPE = 0x1d;
const TARGET = /^(?<namespace>[^/:]+)\/(?<name>[^/:]+):(?<port>\d{1,5})(?<path>\/.*)?$/;

/** `holdfast connect NODE NAMESPACE/NAME:PORT[/path]`: standard input and output are the session's until it is over. */
export async function connect(
  context: CliContext,
  node: string,
  service: string,
  { header = [], dataDir }: ConnectOptions,
): Promise<ExitCode> {
  const { console, terminal } = context;
  const start = { ...targetOf(service), node, headers: headersOf(header), size: terminal?.size() };
  const leave = new AbortController();
  const signal = AbortSignal.any([context.signal, leave.signal]);
  const at = dataDir === undefined ? {} : { dataDir };
  return withClient(context, { ...at, output: 'table' }, async (client) => {
    const session = client.openSession({ signal });
    let quiet = () => {};
    try {
      await session.send({ frame: { $case: 'start', value: start } });
      for await (const { frame } of session.responses) {
        if (frame?.$case === 'opened') quiet = begin(context, service, session, leave);
        else if (frame?.$case === 'data') await console.write(frame.value);
        else if (frame?.$case === 'closed') return tellEnd(context, frame.value);
      }
    } finally {
      quiet();
      leave.abort();
    }
    // Left from here.
    context.signal.throwIfAborted();
    return exitCodes.done;
  });
}

/** From here on what is typed is the session's, and its sizes. Returns what makes the terminal as it was. */
function begin(context: CliContext, service: string, session: AdminSession, leave: AbortController): () => void {
  const { console, terminal } = context;
  // Standard input may be gone before the session is.
  type(context, session, leave).catch(() => session.end());
  if (terminal === undefined) return () => {};
  console.err(`connected to ${service}; Ctrl-] ends it\n`);
  terminal.setRaw(true);
  const resized = () => void session.send({ frame: { $case: 'size', value: terminal.size() } });
  const stop = terminal.onResize(resized);
  return () => {
    stop();
    terminal.setRaw(false);
  };
}

/** Until nothing more is typed, which ends nothing, or the session is left. */
async function type({ stdin, terminal }: CliContext, session: AdminSession, leave: AbortController): Promise<void> {
  for await (const chunk of stdin) {
    const escapeAt = terminal === undefined ? -1 : chunk.indexOf(ESCAPE);
    const data = Buffer.from(escapeAt < 0 ? chunk : chunk.subarray(0, escapeAt));
    if (data.length > 0) await session.send({ frame: { $case: 'data', value: data } });
    if (escapeAt >= 0) return leave.abort();
    if (leave.signal.aborted) return;
  }
  session.end();
}

function tellEnd({ console }: CliContext, { reason, error }: SessionClosed): ExitCode {
  if (error) console.err(`${paint(console, 'red', 'error')}: ${printable(reason)}\n`);
  else if (reason !== '') console.err(`${printable(reason)}\n`);
  return error ? exitCodes.failed : exitCodes.done;
}

/** @throws UsageError */
function targetOf(service: string): Pick<SessionStart, 'namespace' | 'name' | 'port' | 'path'> {
  const { namespace, name, port, path = '' } = TARGET.exec(service)?.groups ?? {};
  if (namespace !== undefined && name !== undefined && port !== undefined) return { namespace, name, port: Number(port), path };
  throw new UsageError(`expected NAMESPACE/NAME:PORT or NAMESPACE/NAME:PORT/path, found ${service}`);
}

/** @throws UsageError */
function headersOf(given: readonly string[]): Record<string, string> {
  const pairs = given.map((text) => {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
    if (name === undefined || value === undefined) throw new UsageError(`expected NAME=VALUE after --header, found ${text}`);
    return [name, value];
  });
  return Object.fromEntries(pairs);
}
