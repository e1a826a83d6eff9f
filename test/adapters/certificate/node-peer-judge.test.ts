import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { nodePeerJudge } from '../../../src/adapters/certificate/node-peer-judge.js';
import { RecentCertificates } from '../../../src/adapters/certificate/peer-certificates.js';
import type { Revocation } from '../../../src/domain/certificate/revocation.js';
import { aid } from '../../../src/domain/link/model.js';
import type { CertificateAuthority } from '../../../src/ports/certificate/certificate-authority.js';
import type { Pair } from '../../../src/ports/certificate/pair-store.js';
import type { PeerNode } from '../../../src/ports/driving/node-streams.js';
import { DAY, HOUR, lasting, MINUTE, newAuthority, newPair, node, server } from './support.js';

let root: CertificateAuthority;
let serverPair: Pair;
let roots: readonly string[];

beforeAll(async () => {
  root = await newAuthority('nodes');
  roots = [root.root];
  serverPair = await newPair(root, server);
});

/** What a server sees of a client that shows this pair, judged as often as `rounds` say. */
async function judged(
  pair: Pair | undefined,
  rounds: readonly ((state: { now: number; revoked: Revocation[] }) => void)[] = [() => {}],
): Promise<readonly (PeerNode | string)[]> {
  const state = { now: Date.now(), revoked: [] as Revocation[] };
  const revocations = { find: (of: string, id: string) => state.revoked.find((each) => each.of === of && each.id === id) };
  const judge = nodePeerJudge({ roots: () => roots, revocations, now: () => state.now });
  const listening = createServer({
    cert: serverPair.certificate,
    key: serverPair.privateKey,
    ca: root.root,
    requestCert: true,
    rejectUnauthorized: false,
  }).listen(0, '127.0.0.1');
  await once(listening, 'listening');
  onTestFinished(() => {
    listening.close();
  });
  const address = listening.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const accepted = once(listening, 'secureConnection') as Promise<[TLSSocket]>;
  const client = connect({
    port,
    host: '127.0.0.1',
    ca: root.root,
    ...(pair === undefined ? {} : { cert: pair.certificate, key: pair.privateKey }),
  });
  client.on('error', () => {});
  onTestFinished(() => {
    client.destroy();
  });
  const [socket] = await accepted;
  return rounds.map((change) => {
    change(state);
    return judge(socket);
  });
}

describe('F3: who calls', () => {
  test('a node, by its certificate and from its address', async () => {
    const [peer] = await judged(await newPair(root));
    expect(peer).toEqual({
      identity: node,
      serial: expect.stringMatching(/^[0-9a-f]{32}$/),
      notAfter: expect.any(Number),
      address: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
    });
  });

  test.each<{ name: string; pair: () => Promise<Pair | undefined>; problem: RegExp }>([
    { name: 'nobody', pair: async () => undefined, problem: /^no certificate was shown/ },
    {
      name: 'a node of another authority',
      pair: async () => newPair(await newAuthority('nodes')),
      problem:
        /was not issued by the authority that is asked for here; it is valid from \S+Z to \S+Z, and the server's clock says \S+Z$/,
    },
    { name: 'a server', pair: () => newPair(root, server), problem: /of server a has the role server; node is asked for here/ },
    {
      name: 'an admin',
      pair: () => newPair(root, { role: 'admin', aid: aid('acme'), name: 'alice', grade: 'admin' }),
      problem: /of admin alice has the role admin; node is asked for here/,
    },
    {
      name: 'one whose time is over',
      pair: () => newPair(root, node, lasting(-DAY, -2 * HOUR)),
      problem: /expired 2 h ago; it is valid from/,
    },
    {
      name: 'one whose time is to come',
      pair: () => newPair(root, node, lasting(2 * HOUR + MINUTE, DAY)),
      problem: /is not valid yet, for another 2 h/,
    },
  ])('$name is told why not', async ({ pair, problem }) => {
    expect(await judged(await pair())).toEqual([expect.stringMatching(problem)]);
  });

  test('of one connection each call is judged anew: by the time, and by what was revoked meanwhile', async () => {
    const verdicts = await judged(await newPair(root), [
      () => {},
      (state) => {
        state.now += 91 * DAY;
      },
      (state) => {
        state.now -= 91 * DAY;
      },
      (state) => {
        state.revoked.push({ of: 'node', id: 'n1', from: 0, kind: 'revoked', reason: 'it was stolen', until: 0 });
      },
    ]);
    expect(verdicts).toEqual([
      expect.objectContaining({ identity: node }),
      expect.stringContaining('expired'),
      expect.objectContaining({ identity: node }),
      expect.stringContaining('was revoked: it was stolen'),
    ]);
  });
});

describe('certificates that were read of late', () => {
  const read = (recent: RecentCertificates, { certificate }: Pair) => recent.read(new X509Certificate(certificate));

  test('say again what they said, and do not become more than so many', async () => {
    const recent = new RecentCertificates([root.root], 2);
    const pairs = await Promise.all(Array.from({ length: 3 }, () => newPair(root)));
    const first = pairs.map((pair) => read(recent, pair));
    expect(new Set(first.map(({ serial }) => serial)).size).toBe(3);
    expect(pairs.map((pair) => read(recent, pair))).toEqual(first);
    expect(recent.size).toBe(2);
  });

  test('those of another authority are not kept, and stay untrusted', async () => {
    const recent = new RecentCertificates([root.root], 2);
    const stranger = await newPair(await newAuthority('nodes'));
    for (const _ of [1, 2]) expect(read(recent, stranger).trusted).toBe(false);
    expect(recent.size).toBe(0);
  });
});
