import type { Subsystem } from '../agent/subsystem.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';
import type { FinishedSweep } from '../dispatch/finished-sweep.js';
import type { InstructionBook } from '../dispatch/instruction-book.js';
import type { NodeSessions } from '../link/node-sessions.js';
import type { PresenceBoard } from '../link/presence-board.js';
import type { Cordons } from './cordons.js';

export interface FleetSubsystemParts {
  readonly presence: PresenceBoard;
  readonly cordons: Cordons;
  readonly book: InstructionBook;
  readonly dispatcher: Dispatcher;
  readonly sessions: NodeSessions;
  readonly sweep: FinishedSweep;
}

/** A control plane's dealings with its nodes. It starts after the store and stops before it; the port that nodes call on, inside of both. */
export class FleetSubsystem implements Subsystem {
  readonly name = 'fleet';
  readonly #parts: FleetSubsystemParts;
  #unsubscribe: () => void = () => {};

  constructor(parts: FleetSubsystemParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { presence, cordons, book, dispatcher, sessions, sweep } = this.#parts;
    this.#unsubscribe = cordons.onChange((nid) => dispatcher.look(nid));
    for (const part of [presence, cordons, book, dispatcher, sessions, sweep]) part.start();
  }

  /** What there is has been read: streams are taken from now on. */
  async ready(signal: AbortSignal): Promise<void> {
    const { book, cordons } = this.#parts;
    await Promise.all([book.loaded({ signal }), cordons.loaded({ signal })]);
  }

  async stop(): Promise<void> {
    const { presence, cordons, book, dispatcher, sessions, sweep } = this.#parts;
    this.#unsubscribe();
    for (const part of [sweep, sessions, dispatcher, book, cordons, presence]) await part.stop();
  }
}
