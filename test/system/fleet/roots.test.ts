import { X509Certificate } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { InstructionState } from '../../../src/adapters/generated/holdfast/admin/v1/fleet.js';
import { hasEtcd } from '../../support/etcd-rig.js';
import { Fleet } from '../support/fleet.js';
import { type FleetDaemon, until } from '../support/fleet-daemon.js';

/** Agents look at their certificates once a minute, and spread over 10 s. */
const RENEWED_MS = 150_000;

let fleet: Fleet;

beforeAll(async () => {
  if (!hasEtcd) return;
  fleet = await Fleet.start({ agents: 2, replicas: 2, scripts: { slow: 'sleep 15; echo slept\n', nothing: 'true\n' } });
});
afterAll(async () => {
  if (hasEtcd) await fleet[Symbol.asyncDispose]();
});

interface Listed {
  readonly roots: readonly {
    readonly name: string;
    readonly current: { readonly fingerprint: string };
    readonly former?: { readonly fingerprint: string; readonly inUse: readonly { readonly node: string }[] };
  }[];
}

const replica = (number: number): FleetDaemon => {
  const server = fleet.servers[number];
  if (server === undefined) throw new Error(`there is no replica ${number}`);
  return server;
};

async function rootOf(name: string, at = replica(0)) {
  const root = (await at.json<Listed>('ca', 'list')).roots.find((each) => each.name === name);
  if (root === undefined) throw new Error(`there is no root of ${name}`);
  return root;
}

const inUse = async () => [...new Set((await rootOf('nodes')).former?.inUse.map(({ node }) => node))].sort();
const fingerprint = (pem: string) => new X509Certificate(pem).fingerprint256.replaceAll(':', '').toLowerCase();
const ok = (stdout: RegExp) => ({ code: 0, stdout: expect.stringMatching(stdout) });

test.skipIf(!hasEtcd)(
  'F1: a new root of nodes, with a replica killed in the middle: agents that run renew, nothing is lost, and the former one is retired',
  async () => {
    const nids = fleet.agents.map(({ nid }) => nid).sort();
    const before = (await rootOf('nodes')).current.fingerprint;
    expect(await replica(0).cli(['ca', 'retire', 'nodes', '-y'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('certificate.no_former_root'),
    });
    await fleet.send(fleet.agent(0).nid, 'RUN_REMOTE_SCRIPT', { script: 'slow' }, 'slow');
    expect(await replica(0).cli(['ca', 'rotate', 'nodes', '-y'])).toMatchObject(
      ok(/certifies from now on: SHA-256 [0-9a-f]{64}/),
    );
    await replica(0).stop('SIGKILL');
    expect((await rootOf('nodes', replica(1))).former?.fingerprint).toBe(before);
    expect(await replica(1).cli(['ca', 'rotate', 'nodes', '-y'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('certificate.root_rotating'),
    });
    await replica(0).start();
    const retire = () => replica(1).cli(['ca', 'retire', 'nodes', '-y']);
    const refused = await retire();
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('certificate.root_in_use') });
    for (const nid of nids) expect(refused.stderr).toContain(nid);

    await until(inUse, (left) => left.length === 0, RENEWED_MS);
    expect(await fleet.resultOf(fleet.agent(0).nid, 'slow')).toMatchObject({ state: InstructionState.DONE });
    const after = (await rootOf('nodes')).current.fingerprint;
    for (const { daemon } of fleet.agents) {
      const ca = () => readFile(join(daemon.dataDir, 'certs/current/ca'), 'utf8');
      expect(fingerprint(await until(ca, (text) => fingerprint(text) === after))).toBe(after);
    }
    // Each has one certificate of the new root, not one a minute.
    expect(await retire()).toMatchObject(ok(/is retired/));
    await fleet.linked();
    for (const { nid } of fleet.agents) {
      expect(await fleet.result(nid, 'RUN_REMOTE_SCRIPT', { script: 'nothing' })).toMatchObject({ reply: { exitCode: 0 } });
    }
    for (const { daemon } of fleet.agents) {
      await daemon.stop('SIGKILL');
      await daemon.start();
    }
    await fleet.linked();
    expect((await rootOf('nodes')).former).toBeUndefined();
  },
  300_000,
);

test.skipIf(!hasEtcd)(
  'F1: a new root of registration: machines with the former file register until it is retired, with the new one from then on',
  async () => {
    const file = join(fleet.server.dataDir, 'registration-ca.crt');
    const former = await readFile(file, 'utf8');
    expect(await fleet.server.cli(['ca', 'rotate', 'registration', '-y'])).toMatchObject(ok(/certifies from now on/));
    const written = () => readFile(file, 'utf8');
    const made = await until(written, (text) => text !== former);
    // What a machine has kept.
    await writeFile(file, former);
    const kept = await fleet.place();
    await writeFile(file, made);
    expect((await fleet.place()).nid).not.toBe(kept.nid);
    expect(await fleet.server.cli(['ca', 'retire', 'registration', '-y'])).toMatchObject(ok(/is retired/));
    await writeFile(file, former);
    await until(
      () => fleet.place().then(() => '', String),
      (failure) => failure.includes('certificate.untrusted'),
    );
    await writeFile(file, made);
    await fleet.place();
  },
  120_000,
);

test.skipIf(!hasEtcd)(
  'F1: a node that is away keeps the former root from being retired; with --force it has to register again',
  async () => {
    const away = fleet.agent(1);
    await away.daemon.stop();
    for (const { nid } of fleet.agents.slice(2)) await fleet.server.cli(['delete', 'node', nid, '-y']);
    expect(await fleet.server.cli(['ca', 'rotate', 'nodes', '-y'])).toMatchObject(ok(/certifies/));
    await until(inUse, (left) => left.join() === away.nid, RENEWED_MS);
    const refused = await fleet.server.cli(['ca', 'retire', 'nodes', '-y']);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining(`1 nodes: ${away.nid}`) });
    const forced = await fleet.server.cli(['ca', 'retire', 'nodes', '-y', '--force']);
    expect(forced).toMatchObject(ok(new RegExp(`is retired\n${away.nid} has to register again\n$`)));
    await away.daemon.start(/is ready|no link/);
    await until(
      () => away.daemon.problems(),
      (problems) => problems.some((problem) => /^link: no link/.test(problem)),
      60_000,
    );
    expect(await fleet.result(fleet.agent(0).nid, 'RUN_REMOTE_SCRIPT', { script: 'nothing' })).toMatchObject({
      reply: { exitCode: 0 },
    });
  },
  300_000,
);
