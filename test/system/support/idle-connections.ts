import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

function start(file: string, args: readonly string[]): ChildProcess {
  return fork(join(import.meta.dirname, file), [...args], { execArgv: [], stdio: 'inherit' });
}

async function answerOf(child: ChildProcess): Promise<number> {
  const [answer] = await Promise.race([once(child, 'message'), once(child, 'exit').then(() => [Number.NaN])]);
  return Number(answer);
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

/** An echo server in a process of its own, as its descriptors would not fit into another's limit. */
export class EchoProcess implements AsyncDisposable {
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(port: number, child: ChildProcess) {
    this.port = port;
    this.#child = child;
  }

  static async start(): Promise<EchoProcess> {
    const child = start('idle-connections-backend.mjs', []);
    return new EchoProcess(await answerOf(child), child);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await end(this.#child);
  }
}

/** A client that holds connections, in a process of its own. */
export class HoldingClient implements AsyncDisposable {
  readonly #child: ChildProcess;

  constructor(host: string, port: number) {
    this.#child = start('idle-connections-client.mjs', [host, String(port)]);
  }

  /** Opens them with an echo each; how many are held then. */
  open(count: number): Promise<number> {
    return this.#ask('open', count);
  }

  close(): Promise<number> {
    return this.#ask('close', 0);
  }

  /** A byte to and fro on `count` of them, spread over all; how many were answered. */
  echo(count: number): Promise<number> {
    return this.#ask('echo', count);
  }

  /** How many of those that were opened are closed. */
  lost(): Promise<number> {
    return this.#ask('lost', 0);
  }

  #ask(verb: string, count: number): Promise<number> {
    const answer = answerOf(this.#child);
    this.#child.send({ verb, count });
    return answer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await end(this.#child);
  }
}
