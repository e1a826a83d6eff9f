import { randomBytes, X509Certificate } from 'node:crypto';
import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPresented } from '../../../src/adapters/certificate/certificate-reader.js';
import { FilePairStore } from '../../../src/adapters/certificate/file-pair-store.js';
import { SealerKeyFile } from '../../../src/adapters/certificate/sealer-key-file.js';
import { X509AuthorityMaker } from '../../../src/adapters/certificate/x509-authority-maker.js';
import { X509KeyMaker } from '../../../src/adapters/certificate/x509-key-maker.js';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { SqliteControlStore } from '../../../src/adapters/store/sqlite-control-store.js';
import { ControlPlaneIdentity } from '../../../src/app/certificate/control-plane-identity.js';
import { openSealer } from '../../../src/app/certificate/open-sealer.js';
import type { Pair } from '../../../src/ports/certificate/pair-store.js';
import { ThrowawayPki } from '../../support/throwaway-pki.js';
import { Fleet, type FleetAgent } from '../support/fleet.js';
import { type FleetDaemon, until } from '../support/fleet-daemon.js';

const options = { signal: new AbortController().signal };
const DAY_MS = 24 * 3_600_000;
const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`;
/** From when, until when, and what the server's clock says. */
const TIMES = `; it is valid from ${TIME} to ${TIME}, and the server's clock says ${TIME}`;

let fleet: Fleet;

beforeAll(async () => {
  fleet = await Fleet.start({ agents: 4, scripts: { where: 'ip -4 -o address show dev eth0\n' } });
});
afterAll(() => fleet[Symbol.asyncDispose]());

function pairsOf({ dataDir }: FleetDaemon): FilePairStore {
  const certs = join(dataDir, 'certs');
  const flat = { ca: `${certs}/ca.crt`, certificate: `${certs}/mtls.crt`, privateKey: `${certs}/mtls.key` };
  return new FilePairStore({ folder: certs, flat });
}

async function pairOf(daemon: FleetDaemon): Promise<Pair> {
  const { current } = await pairsOf(daemon).load(options);
  if (current === undefined) throw new Error('there is no pair');
  return current;
}

/** The agent runs with `pair` from now on. */
async function restartWith({ daemon }: FleetAgent, pair: Pair): Promise<void> {
  await daemon.stop();
  const pairs = pairsOf(daemon);
  const { serial } = await pairs.stage(pair, options);
  await pairs.activate(serial, options);
  await daemon.start();
}

function problem(daemon: FleetDaemon, pattern: RegExp): Promise<readonly string[]> {
  return until(
    () => daemon.problems(),
    (problems) => problems.some((text) => pattern.test(text)),
  );
}

/** As the control plane would have made it some days ago; it is stopped meanwhile. */
async function expiredPair(daemon: FleetDaemon): Promise<Pair> {
  const { ca, certificate: former } = await pairOf(daemon);
  const { identity } = readPresented(new X509Certificate(former).raw, ca);
  if (identity === undefined) throw new Error('the certificate names nobody');
  const { dataDir } = fleet.server;
  await fleet.server.stop('SIGKILL');
  const clock = new SystemClock({ unref: true });
  const store = new SqliteControlStore({ file: join(dataDir, 'control.db'), clock });
  await store.open(options);
  try {
    const sealer = await openSealer(store, new SealerKeyFile(join(dataDir, 'sealing.key')), options);
    const maker = new X509AuthorityMaker();
    const { l2 } = await new ControlPlaneIdentity({ store, sealer, maker, clock, randomBytes }).open(options);
    const { csr, privateKey } = await new X509KeyMaker().makeRequest(options);
    const serial = randomBytes(16).toString('hex').replace(/^./, '7');
    const validity = { notBefore: Date.now() - 10 * DAY_MS, notAfter: Date.now() - 3 * DAY_MS };
    const certificate = await l2.issue({ identity, key: await l2.proveKey(csr, options), serial, ...validity }, options);
    return { certificate, privateKey, ca };
  } finally {
    await store.close();
    await fleet.server.start();
  }
}

test("F3: an expired certificate is named in status with its times and the server's clock", async () => {
  const agent = fleet.agent(0);
  await restartWith(agent, await expiredPair(agent.daemon));
  await problem(agent.daemon, new RegExp(`^link: no link .*certificate 7\\w+ of \\S.* expired 3 days ago${TIMES}`));
  const { code, stdout } = await agent.daemon.cli(['status']);
  expect({ code, says: stdout.includes('expired 3 days ago') }).toEqual({ code: 4, says: true });
});

test('F3: a certificate of another authority, and a server of another one, are named with their times', async () => {
  const agent = fleet.agent(1);
  const own = await pairOf(agent.daemon);
  const pki = new ThrowawayPki();
  try {
    const { identity } = readPresented(new X509Certificate(own.certificate).raw, own.ca);
    const registration = identity?.role === 'node' ? identity.registration : '';
    const san = [`URI:holdfast:node:default:${agent.nid}:${registration}`];
    await restartWith(agent, { ...pki.issue({ name: agent.nid, san }), ca: own.ca });
    await problem(agent.daemon, new RegExp(`^link: no link .*was not issued by the authority that is asked for here${TIMES}`));
    await restartWith(agent, { ...own, ca: pki.root });
    const untrusted =
      /^link: no link .*the server's certificate is not accepted: .*\(valid from .* to .*; the clock here says .*\)/;
    await problem(agent.daemon, untrusted);
  } finally {
    pki.remove();
  }
  await restartWith(agent, own);
  await until(
    () => agent.daemon.problems(),
    (problems) => !problems.some((text) => text.startsWith('link: no link')),
  );
});

test('F4: the agent of a node that was removed loses its link at once, and says why', async () => {
  const { nid, daemon } = fleet.agent(2);
  const start = performance.now();
  expect(await fleet.server.cli(['delete', 'node', nid, '-y'])).toMatchObject({ code: 0 });
  await problem(daemon, new RegExp(`^link: no link .*was revoked: .*${TIMES}`));
  expect(performance.now() - start).toBeLessThan(15_000);
  const { stdout } = await fleet.server.cli(['nodes']);
  expect(stdout).not.toContain(nid);
});

test('B4: of two agents on one copied data directory the registered one goes on working, and both are named', async () => {
  const { nid, daemon } = fleet.agent(3);
  await daemon.stop();
  const space = await fleet.network.join();
  const root = join(fleet.folder, space.name);
  await cp(daemon.root, root, { recursive: true });
  await daemon.start();
  await until(
    () => daemon.problems(),
    (problems) => problems.length === 0,
  );
  const clone = fleet.daemonAt(space, root, daemon.space.name);
  await clone.start();
  await problem(clone, new RegExp(`^link: no link .*DUPLICATE_NODE: ${daemon.space.address}:\\d+ has been connected `));

  const where = await fleet.result(nid, 'RUN_REMOTE_SCRIPT', { script: 'where' });
  expect(where).toMatchObject({ reply: { response: expect.stringContaining(`inet ${daemon.space.address}/`) } });
  const nodes = await fleet.server.ask((client, given) => client.listNodes(given));
  const named = `DUPLICATE_NODE: ${space.address}:\\d+ was turned away, ${daemon.space.address}:\\d+ stays`;
  expect(nodes.nodes.find(({ node }) => node === nid)).toMatchObject({ state: 'online', problem: expect.stringMatching(named) });
  expect((await fleet.server.cli(['nodes'])).stderr).toMatch(new RegExp(`^warning: ${nid}: ${named}`));
  expect(await daemon.problems()).toEqual([]);
});

test('B4: a second machine of the same name gets no changes, and says so until it has a name of its own', async () => {
  const first = fleet.agent(1);
  const { daemon } = await fleet.place(first.daemon.space.name);
  await daemon.start();
  await problem(
    daemon,
    new RegExp(`^log: .*DUPLICATE_NODE: ${first.daemon.space.name} is the node ${first.nid} already; give \\S+ a nodeName`),
  );
  await daemon.stop();
  await rm(join(daemon.dataDir, 'node-identity.json'));
  const renamed = fleet.daemonAt(daemon.space, daemon.root);
  await renamed.start();
  await until(
    () => renamed.problems(),
    (problems) => problems.length === 0,
  );
});
