import { createConnection } from 'node:net';
import { AgentError } from '../../domain/kernel/errors.js';
import { formatAddressPort } from '../../domain/kernel/network.js';
import { BACKEND, type RunningBalancer, type RuntimeStep } from '../../domain/loadbalancer/model.js';
import { SERVER_OPTIONS } from '../../domain/loadbalancer/render.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { BalancerRuntime } from '../../ports/loadbalancer/balancer-runtime.js';
import { readRunning } from './runtime-text.js';

const ANSWER_MS = 3_000;
/** A list of 64 servers is 30 KB. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

export class HaproxyRuntime implements BalancerRuntime {
  readonly #socket: string;

  /** @param socket path of its `stats socket` */
  constructor(socket: string) {
    this.#socket = socket;
  }

  async observe({ signal }: CallOptions): Promise<RunningBalancer | undefined> {
    signal.throwIfAborted();
    try {
      const info = await this.#ask('show info', signal);
      const states = await this.#ask(`show servers state ${BACKEND}`, signal);
      return readRunning(info, states, await this.#ask(`show stat ${BACKEND} 4 -1`, signal));
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
  }

  async change(step: RuntimeStep, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    for (const command of commandsOf(step)) {
      const said = (await this.#asked(command, signal)).trim();
      if (!isTaken(command, said))
        throw new AgentError('loadbalancer.not_changed', { problem: `${command}: ${said.slice(0, 500)}` });
    }
  }

  async #asked(command: string, signal: AbortSignal): Promise<string> {
    try {
      return await this.#ask(command, signal);
    } catch (cause) {
      signal.throwIfAborted();
      throw new AgentError('loadbalancer.not_changed', { problem: `${command}: ${String(cause)}` }, { cause });
    }
  }

  /** One command a connection: HAProxy closes it behind its answer. */
  async #ask(command: string, signal: AbortSignal): Promise<string> {
    const limit = AbortSignal.timeout(ANSWER_MS);
    const socket = createConnection({ path: this.#socket, signal: AbortSignal.any([signal, limit]) });
    socket.end(`${command}\n`);
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of socket) {
      length += chunk.length;
      if (length > MAX_ANSWER_BYTES) throw new Error('it says too much');
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString('utf8');
  }
}

function commandsOf(step: RuntimeStep): readonly string[] {
  const server = `${BACKEND}/${step.name}`;
  switch (step.do) {
    case 'add':
      return [`add server ${server} ${formatAddressPort(step.address, step.port)} ${SERVER_OPTIONS}`];
    case 'ready':
      return [`enable health ${server}`, `set server ${server} state ready`];
    case 'drain':
      return [`set server ${server} state drain`];
    case 'remove':
      return [`set server ${server} state maint`, `del server ${server}`];
  }
}

/** Nothing is the answer of most; the others say what they did, or what they do not do yet. */
function isTaken(command: string, said: string): boolean {
  if (said === '') return true;
  if (command.startsWith('add ')) return said === 'New server registered.';
  if (command.startsWith('del ')) return said === 'Server deleted.' || /still has connections|in use|attached/i.test(said);
  return false;
}
