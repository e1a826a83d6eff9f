import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fleet } from './fleet.js';
import { type FleetDaemon, until } from './fleet-daemon.js';
import type { ClientCounts, FleetPeer } from './fleet-peer.js';

/**
 * What a fleet has to do while parts of it die: clients on every machine of an agent, service after service, and instructions that append
 * a number of their own to a witness.
 */
export class FleetLoad {
  /** Services whose apply was answered with success. */
  readonly acknowledged = new Set<string>();
  readonly #fleet: Fleet;
  readonly #clients: readonly FleetPeer[];
  #isOver = false;
  #applying: Promise<void> | undefined;
  #sending: Promise<number> | undefined;

  private constructor(fleet: Fleet, clients: readonly FleetPeer[]) {
    this.#fleet = fleet;
    this.#clients = clients;
  }

  /** Traffic flows on all machines when it resolves. */
  static async on(fleet: Fleet): Promise<FleetLoad> {
    await writeFile(join(fleet.folder, 'scripts/append'), `echo @N >> ${witnessOf(fleet)}\nsleep 0.$((@N % 7))\necho did @N\n`);
    const { hub } = fleet.network;
    const greeters = [await fleet.peer(hub, 'greet', 'a'), await fleet.peer(hub, 'greet', 'b')];
    const echo = await fleet.peer(hub, 'echo');
    const endpoint = ({ port }: FleetPeer) => ({ name: `p${port}`, address: hub.address, port });
    await fleet.apply('greet', greeters.map(endpoint));
    await fleet.apply('echo', [endpoint(echo)]);
    const known = (daemon: FleetDaemon) =>
      until(
        () => fleet.services(daemon),
        (all) => all.size === 2,
      );
    const vips = await known(fleet.server);
    for (const { daemon } of fleet.agents) await known(daemon);
    await sleep(300);
    const [greetVip = '', echoVip = ''] = [vips.get('greet'), vips.get('echo')];
    const clients = await Promise.all(
      fleet.agents.map(({ daemon }) => fleet.peer(daemon.space, 'client', greetVip, 80, echoVip, 80)),
    );
    const load = new FleetLoad(fleet, clients);
    await load.flows(5);
    return load;
  }

  /** From now on services are applied and instructions sent, at each server in turn. */
  work(): void {
    this.#applying = this.#apply();
    this.#sending = this.#send();
  }

  /** Ends the work: how many instructions there are. */
  async end(): Promise<number> {
    this.#isOver = true;
    await this.#applying;
    return (await this.#sending) ?? 0;
  }

  /** The numbers that instructions have appended. */
  async effects(): Promise<readonly number[]> {
    return (await readFile(witnessOf(this.#fleet), 'utf8')).trim().split('\n').map(Number);
  }

  /** Every client has been answered more than so many times, on both of its services. */
  async flows(times: number): Promise<void> {
    await until(
      () => this.counts(),
      (all) => all.every(({ asked, echoed }) => Math.min(asked, echoed) > times),
    );
  }

  /** The clients end, and with them the connections that they hold. */
  async stop(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.kill()));
  }

  counts(): Promise<readonly ClientCounts[]> {
    return Promise.all(this.#clients.map((client) => client.counts()));
  }

  /** Failures on all machines but that of one agent since `before`. */
  async failuresSince(before: readonly ClientCounts[], but?: number): Promise<readonly string[]> {
    return (await this.counts()).flatMap(({ failures }, index) =>
      index === but ? [] : failures.slice(before[index]?.failures.length).map((failure) => `machine ${index}: ${failure}`),
    );
  }

  async #apply(): Promise<void> {
    for (let number = 0; !this.#isOver; number++) {
      const applied = await this.#fleet.apply(`s-${number}`, [], this.#serverOf(number)).then(
        () => true,
        () => false,
      );
      if (applied) this.acknowledged.add(`s-${number}`);
      await sleep(50);
    }
  }

  /** Each agent in turn; whoever got no answer says it again under the same tag, also to another server. */
  async #send(): Promise<number> {
    const { agents } = this.#fleet;
    let number = 0;
    let attempt = 0;
    for (; !this.#isOver; number++) {
      const { nid } = this.#fleet.agent(number % agents.length);
      const order = { script: `append.${number}` };
      await until(
        () => this.#fleet.send(nid, 'RUN_REMOTE_SCRIPT', order, `t-${number}`, this.#serverOf(attempt++)),
        () => true,
        60_000,
      );
      await sleep(60);
    }
    return number;
  }

  #serverOf(number: number): FleetDaemon {
    const { servers, server } = this.#fleet;
    return servers[number % servers.length] ?? server;
  }
}

function witnessOf(fleet: Fleet): string {
  return join(fleet.folder, 'witness');
}
