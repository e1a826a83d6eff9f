import type { DrivingServer } from '../../ports/driving/server.js';
import type { Subsystem } from './subsystem.js';

/** A server as a part of the agent: it serves from its start to its stop. */
export class ServerSubsystem implements Subsystem {
  readonly name: string;
  readonly #server: DrivingServer;

  constructor(name: string, server: DrivingServer) {
    this.name = name;
    this.#server = server;
  }

  async start(): Promise<void> {
    await this.#server.start();
  }

  async ready(): Promise<void> {}

  async stop(): Promise<void> {
    await this.#server.stop();
  }
}
