import type { DrivingServer } from '../../ports/driving/server.js';
import type { Subsystem } from './subsystem.js';

/** A server as a part of the agent: it serves from its start to its stop. */
export class ServerSubsystem implements Subsystem {
  readonly name: string;
  readonly #server: DrivingServer;
  readonly #beforeStop: () => void;

  /** @param beforeStop what its callers are told while it still serves */
  constructor(name: string, server: DrivingServer, beforeStop: () => void = () => {}) {
    this.name = name;
    this.#server = server;
    this.#beforeStop = beforeStop;
  }

  async start(): Promise<void> {
    await this.#server.start();
  }

  async ready(): Promise<void> {}

  async stop(): Promise<void> {
    this.#beforeStop();
    await this.#server.stop();
  }
}
