import { type ChildProcess, execFile, type SpawnOptions, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A network namespace. What runs in it sees its own interfaces alone. */
export interface NetworkSpace {
  readonly name: string;
  readonly address: string;
}

/**
 * The network of a fleet, apart from everything else on the machine: a namespace that has a bridge, for the server, and one for each agent,
 * joined to the bridge. Gone with its disposal. Needs root.
 */
export class FleetNetwork implements AsyncDisposable {
  readonly hub: NetworkSpace;
  readonly #spaces: NetworkSpace[] = [];

  private constructor(hub: NetworkSpace) {
    this.hub = hub;
    this.#spaces.push(hub);
  }

  static async make(): Promise<FleetNetwork> {
    const name = `hf-${randomBytes(4).toString('hex')}`;
    const network = new FleetNetwork({ name, address: '10.77.0.1' });
    try {
      await run('ip', ['netns', 'add', name]);
      await inSpace(name, 'link set lo up', 'link add br0 type bridge', 'addr add 10.77.0.1/16 dev br0', 'link set br0 up');
    } catch (error) {
      await network[Symbol.asyncDispose]();
      throw error;
    }
    return network;
  }

  /** One more machine. */
  async join(): Promise<NetworkSpace> {
    const number = this.#spaces.length;
    const name = `${this.hub.name}-${number}`;
    const space = { name, address: `10.77.${number >> 8}.${(number & 0xff) + 1}` };
    this.#spaces.push(space);
    await run('ip', ['netns', 'add', name]);
    await inSpace(name, 'link set lo up', `link add eth0 type veth peer name p${number} netns ${this.hub.name}`);
    // A bridge has the lowest address of its ports: with a lower one those who joined before would send to the former for 5 s and more.
    const mac = `02:00:00:00:${hexByte(number >> 8)}:${hexByte(number & 0xff)}`;
    await inSpace(this.hub.name, `link set p${number} address ${mac}`, `link set p${number} master br0 up`);
    await inSpace(name, `addr add ${space.address}/16 dev eth0`, 'link set eth0 up', 'route add default via 10.77.0.1');
    return space;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { name } of this.#spaces.splice(0).reverse()) {
      await killAll(name).catch(() => {});
      await run('ip', ['netns', 'del', name]).catch(() => {});
    }
  }
}

function hexByte(value: number): string {
  return value.toString(16).padStart(2, '0');
}

/** An agent's overlay goes on without it. */
async function killAll(name: string): Promise<void> {
  const { stdout } = await run('ip', ['netns', 'pids', name]);
  for (const pid of stdout.split('\n').filter((line) => line !== '')) process.kill(Number(pid), 'SIGKILL');
}

async function inSpace(name: string, ...commands: readonly string[]): Promise<void> {
  for (const command of commands) await run('ip', ['-n', name, ...command.split(' ')]);
}

/** `ip netns exec` becomes the program: the pid is the program's. */
export function spawnIn({ name }: NetworkSpace, argv: readonly string[], options: SpawnOptions): ChildProcess {
  return spawn('ip', ['netns', 'exec', name, ...argv], options);
}
