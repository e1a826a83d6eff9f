import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { inside, run } from './children.ts';
import { CLIENT_ADDRESSES } from './network.ts';
import { tools } from './peers.ts';
import type { Measurement } from './results.ts';
import { memoryBytes } from './usage.ts';

/** Where a case sends its traffic. */
export interface Target {
  /** The client's namespace. */
  readonly namespace: string;
  readonly address: string;
  readonly iperf: number;
  readonly echo: number;
  /** The proxy's process; `undefined` when there is no proxy. */
  readonly pid: number | undefined;
}

export interface Effort {
  readonly seconds: number;
  /** How many connections the idle case holds. */
  readonly idle: number;
}

export interface Case {
  readonly name: string;
  readonly title: string;
  /** Of the measurement's value. */
  readonly unit: string;
  readonly higherIsBetter: boolean;
  readonly protocol: 'tcp' | 'udp';
  /** Whom the others are compared with. */
  readonly reference: string;
  /** Peers that make no sense here, or whose variants differ elsewhere only. */
  readonly without: readonly string[];
  /** Whether each round starts the peer anew: memory that an allocator keeps would hide what the next round takes. */
  readonly fresh: boolean;
  run(target: Target, effort: Effort): Promise<Measurement>;
}

const tuned = ['haproxy1-tuned', 'haproxy2-tuned'];
const polling = 'holdfast1-poll';
const blocked = 'holdfast1-blocked';
const tcp = { higherIsBetter: true, protocol: 'tcp', reference: 'haproxy1', fresh: false } as const;
const bulk = { ...tcp, unit: 'Gbit/s', reference: 'haproxy1-tuned', without: [polling, blocked] };

export const cases: readonly Case[] = [
  {
    name: 'short',
    title: 'New connections: connect, 64 bytes and their echo, close; 64 at a time',
    unit: 'connections/s',
    ...tcp,
    without: [...tuned, polling, blocked],
    run: (target, { seconds }) => load(target, 'short', target.echo, 64, seconds),
  },
  {
    name: 'ping',
    title: 'Ping-pong of 64 bytes on 64 connections',
    unit: 'round trips/s',
    ...tcp,
    without: [...tuned, polling],
    run: (target, { seconds }) => load(target, 'ping', target.echo, 64, seconds),
  },
  {
    name: 'ping1',
    title: 'Ping-pong of 64 bytes on one connection',
    unit: 'round trips/s',
    ...tcp,
    without: [...tuned, 'haproxy2', 'nginx2', 'holdfast2', blocked],
    run: (target, { seconds }) => load(target, 'ping', target.echo, 1, seconds),
  },
  {
    name: 'iperf1',
    title: 'Bulk, one stream',
    ...bulk,
    run: (target, { seconds }) => iperf(target, 1, seconds),
  },
  {
    name: 'iperf8',
    title: 'Bulk, eight streams',
    ...bulk,
    run: (target, { seconds }) => iperf(target, 8, seconds),
  },
  {
    name: 'udp',
    title: 'UDP: 16 flows with 8 datagrams of 64 bytes on the way each',
    unit: 'round trips/s',
    higherIsBetter: true,
    protocol: 'udp',
    reference: 'nginx1',
    fresh: false,
    without: [polling, blocked],
    run: (target, { seconds }) => load(target, 'udp', target.echo, 16, seconds),
  },
  {
    name: 'idle',
    title: 'Memory of an idle connection',
    unit: 'bytes/connection',
    higherIsBetter: false,
    protocol: 'tcp',
    reference: 'haproxy1',
    fresh: true,
    without: ['direct', ...tuned, polling, blocked],
    run: idle,
  },
];

interface LoadLine {
  /** With those of the warm-up. */
  readonly operations: number;
  readonly errors: number;
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
}

const loadCommand = (target: Target, mode: string, port: number, connections: number, seconds: number) =>
  inside(target.namespace, [
    join(tools, 'load'),
    mode,
    `${target.address}:${port}`,
    String(connections),
    String(seconds),
    mode === 'udp' ? '' : CLIENT_ADDRESSES.join(','),
  ]);

async function load(target: Target, mode: string, port: number, connections: number, seconds: number): Promise<Measurement> {
  const { code, stdout, stderr } = await run(loadCommand(target, mode, port, connections, seconds), seconds * 1_000 + 20_000);
  if (code !== 0) throw new Error(`load ${mode} ended with ${code}: ${stderr}`);
  const { operations, errors, rate, p50, p99 }: LoadLine = JSON.parse(stdout);
  return { value: rate, operations, errors, p50Us: p50, p99Us: p99 };
}

/** The server takes one client at a time and may still be busy with the last one. */
async function iperf(target: Target, streams: number, seconds: number): Promise<Measurement> {
  const time = String(Math.max(1, Math.round(seconds)));
  const flags = ['-p', String(target.iperf), '-t', time, '-P', String(streams), '-J'];
  const { stdout, stderr } = await run(
    inside(target.namespace, ['iperf3', '-c', target.address, ...flags]),
    seconds * 1_000 + 20_000,
  );
  const { end, error } = JSON.parse(stdout);
  if (error !== undefined) throw new Error(`iperf3: ${error} ${stderr}`);
  const { bits_per_second, bytes } = end.sum_received;
  return { value: bits_per_second / 1e9, gigabytes: bytes / 1e9, errors: 0 };
}

/** How much more memory the proxy has with the connections than before them. */
async function idle(target: Target, { idle: connections }: Effort): Promise<Measurement> {
  if (target.pid === undefined) throw new Error('there is no proxy whose memory could be measured');
  await sleep(1_000);
  const before = memoryBytes(target.pid);
  const [program = '', ...args] = loadCommand(target, 'idle', target.echo, connections, 1);
  const client = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    const { operations, errors }: LoadLine = JSON.parse(await firstLine(client));
    await sleep(1_000);
    if (operations < connections) throw new Error(`${connections - operations} of ${connections} connections failed`);
    return { value: (memoryBytes(target.pid) - before) / operations, errors };
  } finally {
    client.stdin?.end();
    await once(client, 'exit');
  }
}

async function firstLine({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error('nothing to read from');
  for await (const line of createInterface({ input: stdout })) return line;
  throw new Error('the load generator said nothing');
}
