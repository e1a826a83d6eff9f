import { closeSync, writeSync } from 'node:fs';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Inheritance } from '../../ports/agent/successor.js';
import type { ListeningSocket } from '../../ports/dataplane/data-plane.js';
import type { Addon } from '../dataplane/addon.js';
import { ASKS, CHANNEL_VARIABLE, partSchema, SERVES } from './inheritance-codec.js';

/** The one before stops what it has but its connections first: each part within 10 s. */
const STOP_MS = 120_000;

/** The process that has started this one to take its place. */
export class Predecessor {
  readonly #channel: number;

  private constructor(channel: number) {
    this.#channel = channel;
  }

  /** Undefined when there is none. The variable is gone then: it is nobody else's. */
  static of(env: NodeJS.ProcessEnv): Predecessor | undefined {
    const { [CHANNEL_VARIABLE]: text } = env;
    delete env[CHANNEL_VARIABLE];
    return text === undefined ? undefined : new Predecessor(/^[1-9]\d*$/.test(text) ? Number(text) : Number.NaN);
  }

  /** Asks for all that it has, and waits for it, with the thread: nothing else is to be done. @throws AgentError `agent.nothing_inherited` */
  take(addon: Addon): Inheritance {
    const sockets: ListeningSocket[] = [];
    const locks: number[] = [];
    try {
      writeSync(this.#channel, Uint8Array.of(ASKS));
      for (let more = true; more; ) {
        const { text, fds } = addon.receiveDescriptors(this.#channel, STOP_MS);
        const part = partSchema.parse(JSON.parse(text));
        for (const [index, fd] of fds.entries()) {
          const what = part.what[index];
          if (what === 'lock') locks.push(fd);
          else if (what !== undefined) sockets.push({ protocol: what, fd });
        }
        ({ more } = part);
      }
    } catch (cause) {
      throw new AgentError('agent.nothing_inherited', { problem: `the agent before this one hands nothing over` }, { cause });
    }
    if (locks.length === 0)
      throw new AgentError('agent.nothing_inherited', { problem: 'the lock of the data directory is missing' });
    return { locks, sockets };
  }

  /** Everything is taken up: the one before carries its connections to their end and goes. */
  serves(): void {
    try {
      writeSync(this.#channel, Uint8Array.of(SERVES));
    } catch {
      // It is gone: nobody is left to be told.
    }
    closeSync(this.#channel);
  }
}
