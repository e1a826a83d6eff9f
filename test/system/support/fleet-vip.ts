import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { Fleet, FleetAgent } from './fleet.js';
import { until } from './fleet-daemon.js';

const run = promisify(execFile);

/** Of the fleet's network, and nobody's own. */
export const VIP = '10.77.200.100';

/** From now on these nodes may have the virtual IP; the servers start again with it. */
export async function mayHave(fleet: Fleet, agents: readonly FleetAgent[]): Promise<void> {
  const nodes = agents.map(({ nid }) => nid).join(', ');
  for (const server of fleet.servers) {
    const file = `${server.dataDir}/holdfast.yaml`;
    const before = await readFile(file, 'utf8').catch(() => '');
    await server.stop();
    await writeFile(file, `${before}vip:\n  candidates: [${nodes}]\n`);
    await server.start();
  }
  await fleet.linked();
}

/** The node that the control plane says has it; undefined while none is said to. */
export async function saidHolder(fleet: Fleet, at = fleet.server): Promise<string | undefined> {
  const { vips } = await at.ask((client, given) => client.listVips(given));
  const [vip] = vips;
  return vip?.phase === 'held' ? vip.node : undefined;
}

/** Whether the kernel of an agent's machine has it. */
export async function has({ daemon }: FleetAgent): Promise<boolean> {
  const { stdout } = await run('ip', ['-n', daemon.space.name, '-4', 'addr', 'show', 'to', VIP]);
  return stdout.includes(VIP);
}

/** Resolves with the only agent that has it, when it is the one that the control plane says. */
export async function settledHolder(fleet: Fleet, withinMs = 90_000): Promise<FleetAgent> {
  const look = async () => {
    const said = await saidHolder(fleet);
    const having: string[] = [];
    for (const agent of fleet.agents) if (await has(agent)) having.push(agent.nid);
    return { said, having };
  };
  const { said } = await until(look, ({ said, having }) => said !== undefined && having.join() === said, withinMs);
  const holder = fleet.agents.find(({ nid }) => nid === said);
  if (holder === undefined) throw new Error(`nobody is ${said}`);
  return holder;
}

/** Milliseconds of the wall clock; `until` is infinite while it is still there. */
export interface Holding {
  readonly nid: string;
  readonly from: number;
  until: number;
}

/** What the kernel of each agent tells of the address, as `ip monitor` hears it: exact, whoever adds it and whoever takes it away. */
export class VipMonitor implements Disposable {
  readonly holdings: Holding[] = [];
  readonly #children: ChildProcess[] = [];

  static async start(fleet: Fleet): Promise<VipMonitor> {
    const monitor = new VipMonitor();
    for (const agent of fleet.agents) monitor.#listen(agent);
    for (const agent of fleet.agents) if (await has(agent)) monitor.#heard(agent.nid, false, Date.now());
    return monitor;
  }

  /** Pairs that have it at the same time, with for how long, milliseconds. */
  overlaps(): readonly string[] {
    return this.holdings.flatMap((one, place) =>
      this.holdings.slice(place + 1).flatMap((other) => {
        const both = Math.min(one.until, other.until) - Math.max(one.from, other.from);
        return one.nid !== other.nid && both > 0 ? [`${one.nid} and ${other.nid} for ${both} ms`] : [];
      }),
    );
  }

  [Symbol.dispose](): void {
    for (const child of this.#children) child.kill('SIGKILL');
  }

  #listen({ nid, daemon }: FleetAgent): void {
    const child = spawn('ip', ['-n', daemon.space.name, '-ts', '-o', 'monitor', 'address'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#children.push(child);
    let rest = '';
    child.stdout.on('data', (chunk: Buffer) => {
      const lines = `${rest}${chunk}`.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines.filter((each) => each.includes(`inet ${VIP}`))) {
        const time = /^\[([^\]]+)\]/.exec(line)?.[1];
        this.#heard(nid, line.includes('Deleted'), time === undefined ? Date.now() : Date.parse(`${time}Z`));
      }
    });
  }

  #heard(nid: string, isGone: boolean, at: number): void {
    const open = this.holdings.findLast((one) => one.nid === nid && one.until === Number.POSITIVE_INFINITY);
    if (isGone && open !== undefined) open.until = at;
    else if (!isGone && open === undefined) this.holdings.push({ nid, from: at, until: Number.POSITIVE_INFINITY });
  }
}

/** The MACs that answer for the address, as the server's machine hears them. */
export async function answering(fleet: Fleet): Promise<readonly string[]> {
  const args = ['netns', 'exec', fleet.network.hub.name, 'arping', '-b', '-c', '2', '-w', '2', '-I', 'br0', VIP];
  const { stdout } = await run('ip', args).catch((error: { stdout?: string }) => ({ stdout: error.stdout ?? '' }));
  return [...new Set([...stdout.matchAll(/\[([0-9A-F:]+)\]/gi)].map(([, mac]) => (mac ?? '').toLowerCase()))];
}

export async function macOf({ daemon }: FleetAgent): Promise<string> {
  const { stdout } = await run('ip', ['-n', daemon.space.name, 'link', 'show', 'dev', 'eth0']);
  return /link\/ether (\S+)/.exec(stdout)?.[1] ?? '';
}

/** Pulls an agent's cable, or puts it back in. */
export async function plug(fleet: Fleet, { daemon }: FleetAgent, how: 'up' | 'down'): Promise<void> {
  const port = `p${/\d+$/.exec(daemon.space.name)?.[0]}`;
  await run('ip', ['-n', fleet.network.hub.name, 'link', 'set', port, how]);
}
