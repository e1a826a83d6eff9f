import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { type NetworkSpace, spawnIn } from './fleet-network.js';

export interface ClientCounts {
  /** New connections that were answered. */
  readonly asked: number;
  /** Echoes on the connection that is held. */
  readonly echoed: number;
  /** `TIME new: REASON` or `TIME held: REASON`. */
  readonly failures: readonly string[];
}

/**
 * A peer of a fleet, in a process of its own in one of its namespaces. `installer` serves scripts from a folder and says hello elsewhere;
 * `greet` says a text and closes; `echo`; `websocket` answers texts; `proxy` passes connections on until it cuts them; `client` makes connections all the time;
 * `hold` and `idle` keep one and say nothing; `udp-answer` says a text to whom `udp-ask` asks, all the time and on one socket.
 */
export class FleetPeer {
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(port: number, child: ChildProcess) {
    this.port = port;
    this.#child = child;
  }

  static async start(space: NetworkSpace, kind: string, ...args: readonly (string | number)[]): Promise<FleetPeer> {
    const argv = [process.execPath, join(import.meta.dirname, 'fleet-peer.mjs'), kind, ...args.map(String)];
    const child = spawnIn(space, argv, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    const died = once(child, 'exit').then(([code, signal]) => {
      throw new Error(`${kind} ${args.join(' ')} ended with ${code ?? signal}`);
    });
    died.catch(() => {});
    const [port] = await Promise.race([once(child, 'message'), died]);
    return new FleetPeer(Number(port), child);
  }

  /** Of a client, since its start. */
  async counts(): Promise<ClientCounts> {
    return (await this.#ask('counts')) as ClientCounts;
  }

  /** Of `hold` and `idle`: how each connection ended, and how many milliseconds after the start of the peer. Of `udp-ask`: what it heard, in a row. */
  async ends(): Promise<readonly string[]> {
    return (await this.#ask('ends')) as readonly string[];
  }

  /** Of a proxy: resets every connection that came from there, and says how many. */
  async cut(from: string): Promise<number> {
    return Number(await this.#ask({ cut: from }));
  }

  async #ask(message: string | object): Promise<unknown> {
    this.#child.send(message);
    const [answer] = await once(this.#child, 'message');
    return answer;
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }
}
