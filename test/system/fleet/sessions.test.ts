import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { holdfast } from '../support/daemon.js';
import { Fleet } from '../support/fleet.js';
import { until } from '../support/fleet-daemon.js';
import type { FleetPeer } from '../support/fleet-peer.js';

let fleet: Fleet;
let service: FleetPeer;
let target: string;
let hosts: string;

beforeAll(async () => {
  fleet = await Fleet.start({ behindProxy: true, scripts: { quick: 'echo done\n' } });
  service = await fleet.peer(fleet.network.hub, 'websocket');
  target = `shop/api:${service.port}`;
  // What stands in for the name service of a cluster: `ip netns exec` puts this file over /etc/hosts. The agent starts once more to have it.
  const { daemon } = fleet.agent();
  hosts = join('/etc/netns', daemon.space.name);
  await mkdir(hosts, { recursive: true });
  await writeFile(join(hosts, 'hosts'), `127.0.0.1 localhost\n${fleet.network.hub.address} api.shop.svc.cluster.local\n`);
  await daemon.stop();
  await daemon.start();
  await fleet.linked();
});

afterAll(async () => {
  await fleet[Symbol.asyncDispose]();
  await rm(hosts, { recursive: true, force: true });
});

/** `holdfast connect` as somebody runs it at the server, with a pipe for a keyboard. */
class Connected {
  readonly #child: ChildProcess;
  readonly #out: Buffer[] = [];
  stderr = '';

  constructor(service: string, ...args: readonly string[]) {
    const argv = ['connect', fleet.agent().nid, service, ...args, '--data-dir', fleet.server.dataDir];
    this.#child = spawn(holdfast, argv, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child.stdout?.on('data', (chunk: Buffer) => this.#out.push(chunk));
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString();
    });
    this.#child.stdin?.on('error', () => {});
  }

  get out(): Buffer {
    return Buffer.concat(this.#out);
  }

  type(text: string): void {
    this.#child.stdin?.write(text);
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async ended(): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, 'close');
    return this.#child.exitCode;
  }
}

const says = (session: Connected, text: string) =>
  until(
    async () => session.out.toString(),
    (out) => out.includes(text),
  );

/** The exit code of one more session. */
async function connectedAgain(): Promise<number | null> {
  const next = new Connected(target);
  next.type('bye');
  return next.ended();
}

test('a session carries both ways through server and agent, and ends as the service ends it', async () => {
  const session = new Connected(`${target}/sh?x=1`);
  session.type('hello');
  await says(session, '<hello>');
  session.type('bye');
  expect(await session.ended()).toBe(0);
  expect(session.stderr).toBe('the service closed the session: after /sh?x=1\n');
});

test('8 MiB of output come whole and in order, while instructions are answered', async () => {
  const session = new Connected(target);
  session.type('flood');
  const { reply } = await fleet.result(fleet.agent().nid, 'RUN_REMOTE_SCRIPT', { script: 'quick' });
  expect(reply).toMatchObject({ response: 'done\n', exitCode: 0 });
  expect(await session.ended()).toBe(0);
  const { out } = session;
  expect(out.length).toBe(128 * 65_536);
  for (let piece = 0; piece < 128; piece++) expect(out[piece * 65_536 + 17]).toBe(piece);
});

test('what cannot be reached, and what may not be, ends with exit code 1 and the reason', async () => {
  const closed = new Connected('shop/api:1');
  expect(await closed.ended()).toBe(1);
  expect(closed.stderr).toMatch(/^error: .*ECONNREFUSED/);
  const unknown = new Connected('shop/nobody:80');
  expect(await unknown.ended()).toBe(1);
  expect(unknown.stderr).toMatch(/^error: session.unreachable: .*(ENOTFOUND|EAI_AGAIN|no answer)/);
  const elsewhere = new Connected('shop/evil.com:80');
  expect(await elsewhere.ended()).toBe(1);
  expect(elsewhere.stderr).toMatch(/name: expected a DNS label/);
});

test('the seventeenth session of a node is refused, and the others go on', async () => {
  const sessions = Array.from({ length: 16 }, () => new Connected(target));
  for (const session of sessions) session.type('hi');
  for (const session of sessions) await says(session, '<hi>');
  const last = new Connected(target);
  expect(await last.ended()).toBe(1);
  expect(last.stderr).toBe('error: TOO_MANY: 16 sessions are open\n');
  for (const session of sessions) session.type('bye');
  for (const session of sessions) expect(await session.ended()).toBe(0);
});

test('a caller that goes away leaves nothing at the node', async () => {
  const sessions = Array.from({ length: 16 }, () => new Connected(target));
  for (const session of sessions) session.type('hi');
  for (const session of sessions) await says(session, '<hi>');
  for (const session of sessions) session.kill('SIGKILL');
  for (const session of sessions) await session.ended();
  const next = new Connected(target);
  next.type('again');
  await says(next, '<again>');
  next.type('bye');
  expect(await next.ended()).toBe(0);
});

test('a service that never reads ends its session, and the link lives', async () => {
  const session = new Connected(target);
  session.type('deaf');
  await new Promise((resolve) => setTimeout(resolve, 500));
  session.type('x'.repeat(24 * 1024 * 1024));
  expect(await session.ended()).toBe(1);
  expect(session.stderr).toMatch(/does not read its input/);
  expect(fleet.server.stderr).not.toMatch(/SLOW/);
});

test('a link that is cut ends its sessions with the reason; the next one works when the node is back', async () => {
  const session = new Connected(target);
  session.type('hi');
  await says(session, '<hi>');
  await fleet.proxy?.cut(fleet.agent().daemon.space.address);
  expect(await session.ended()).toBe(1);
  expect(session.stderr).toBe('error: the link to the node was lost\n');
  await until(connectedAgain, (code) => code === 0, 60_000);
});

test('a server that is killed in the middle takes no agent with it', async () => {
  const session = new Connected(target);
  session.type('hi');
  await says(session, '<hi>');
  await fleet.server.stop('SIGKILL');
  expect(await session.ended()).toBe(3);
  await fleet.server.start();
  await until(connectedAgain, (code) => code === 0, 60_000);
});
