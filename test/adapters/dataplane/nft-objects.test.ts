import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { NftObject, NftOperation } from '../../../src/adapters/dataplane/nft-addon.js';
import { ipIn, NamespaceChild } from '../../support/namespace-child.js';

const node = `hf-nftobj-n-${process.pid}`;
const peer = `hf-nftobj-p-${process.pid}`;
const table = 'holdfast-objects';

describe.skipIf(process.getuid?.() !== 0)('objects of nf_tables', () => {
  let child: NamespaceChild;
  let other: NamespaceChild;

  const apply = (plan: readonly NftOperation[], generation?: number) =>
    child.run(
      ({ state }, operations, planned) => {
        try {
          state.nft.apply(operations, planned);
          return 'done';
        } catch (error) {
          const { code, operation, message } = error as { code: string; operation?: number; message: string };
          return { code, operation, message };
        }
      },
      plan,
      generation,
    );
  const dump = (kind: string, set?: string): Promise<readonly NftObject[]> =>
    child.run(({ state }, ...args) => state.nft.dump(...args), kind, table, set);

  beforeAll(async () => {
    for (const name of [node, peer]) {
      execFileSync('ip', ['netns', 'add', name]);
      ipIn(name, 'link', 'set', 'lo', 'up');
    }
    ipIn(node, 'link', 'add', 'port', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', peer);
    ipIn(node, 'addr', 'add', '10.78.0.1/24', 'dev', 'port');
    for (const address of ['10.78.0.2/24', '10.78.0.99/24']) ipIn(peer, 'addr', 'add', address, 'dev', 'eth0');
    ipIn(node, 'link', 'set', 'port', 'up');
    ipIn(peer, 'link', 'set', 'eth0', 'up');
    child = new NamespaceChild(node);
    other = new NamespaceChild(peer);
    await child.run(({ addon, state }) => {
      state.nft = new addon.NftSocket();
    });
  });
  beforeEach(() =>
    apply([
      { kind: 'table', table },
      { kind: 'remove', table },
      { kind: 'table', table },
    ]),
  );
  afterAll(async () => {
    await child?.stop();
    await other?.stop();
    for (const name of [node, peer]) execFileSync('ip', ['netns', 'del', name]);
  });

  test('an ingress chain of our table keeps forged senders of a port out, and a counter says how many', async () => {
    const spoof: readonly NftOperation[] = [
      { kind: 'counter', table, counter: 'spoof-port' },
      { kind: 'chain', table, chain: 'port', type: 'filter', hook: 5, priority: 0, device: 'port' },
      {
        kind: 'rule',
        table,
        chain: 'port',
        expressions: [
          ['meta-load', 1, 8],
          ['cmp', 8, 0, Uint8Array.of(8, 0)],
          ['payload', 8, 1, 12, 4],
          ['cmp', 8, 1, Uint8Array.of(10, 78, 0, 2)],
          ['object', 1, 'spoof-port'],
          ['verdict', 0, 0, ''],
        ],
      },
    ];
    expect(await apply(spoof)).toBe('done');
    await child.run(
      ({ dgram, state }) =>
        new Promise<void>((resolve) => {
          state.heard = [];
          const socket = dgram.createSocket('udp4');
          socket.on('message', (_text, from) => state.heard.push(from.address));
          socket.bind(9000, '10.78.0.1', resolve);
        }),
    );
    for (const address of ['10.78.0.99', '10.78.0.2', '10.78.0.99', '10.78.0.2']) {
      await other.run(
        ({ dgram }, from) =>
          new Promise<void>((resolve) => {
            const socket = dgram.createSocket('udp4');
            socket.bind(0, from, () => socket.send('x', 9000, '10.78.0.1', () => socket.close(() => resolve())));
          }),
        address,
      );
    }
    await expect.poll(() => child.run(({ state }) => state.heard)).toEqual(['10.78.0.2', '10.78.0.2']);
    // The rules are made anew; what was counted stays.
    expect(await apply([{ kind: 'flush', table, chain: 'port' }, ...spoof.slice(2), ...spoof.slice(0, 1)])).toBe('done');
    // 29 bytes of IPv4, UDP and text each.
    expect(await dump('counter')).toEqual([{ family: 1, table, counter: 'spoof-port', packets: 2, bytes: 58, flags: 0 }]);
    expect(await dump('chain')).toMatchObject([{ chain: 'port', hook: 5, device: 'port' }]);
  });

  test('rules by handle, sets by flush, elements that go by themselves and verdicts that return', async () => {
    const counting = { kind: 'rule', table, chain: 'c', expressions: [['counter']] } as const;
    const one = Uint8Array.of(1, 0, 0, 0);
    const plan: readonly NftOperation[] = [
      { kind: 'chain', table, chain: 'c' },
      counting,
      counting,
      { kind: 'set', table, set: 'timed', flags: 16, keyType: 19, fields: [4] },
      { kind: 'add-elements', table, set: 'timed', keyBytes: 4, packed: one, timeoutMs: 200 },
      { kind: 'set', table, set: 'ways', flags: 8, keyType: 19, fields: [4], dataType: 0xffff_ff00, dataBytes: 16 },
      { kind: 'add-elements', table, set: 'ways', keyBytes: 4, packed: one, chains: ['c'], verdict: 'jump' },
    ];
    expect(await apply(plan)).toBe('done');
    const [first, second] = await dump('rule');
    expect(await apply([{ kind: 'remove', table, chain: 'c', handle: first?.handle ?? 0 }])).toBe('done');
    expect((await dump('rule')).map(({ handle }) => handle)).toEqual([second?.handle]);
    expect(await dump('element', 'ways')).toMatchObject([{ chain: 'c' }]);
    expect(await dump('element', 'timed')).toMatchObject([{ expiresMs: expect.any(Number) }]);
    await expect.poll(() => dump('element', 'timed')).toEqual([]);
    expect(await apply([{ kind: 'flush', table, set: 'ways' }])).toBe('done');
    expect(await dump('element', 'ways')).toEqual([]);
  });

  test('a plan for a ruleset that is no more is refused, and says so', async () => {
    const generation: number = await child.run(({ state }) => state.nft.generation());
    const chain = { kind: 'chain', table, chain: 'c' } as const;
    expect(await apply([chain], generation)).toBe('done');
    expect(await apply([chain], generation)).toEqual({
      code: 'ERESTART',
      message:
        'apply: the ruleset is not of the generation that this was planned for: Interrupted system call should be restarted',
    });
    expect(await apply([chain], generation + 1)).toBe('done');
  });

  test('whose a table is stands in the error', async () => {
    const said = await child.run(({ addon, state }) => {
      const own = new addon.NftSocket();
      if (!own.knowsFlags(6)) return undefined;
      const owned = { kind: 'table', table: 'owned', flags: 6 } as const;
      own.apply([owned]);
      const problem = (call: () => void) => {
        try {
          call();
          return 'done';
        } catch (error) {
          return `${(error as { code: string }).code} ${(error as Error).message.replace(String(own.port()), 'PORT')}`;
        }
      };
      const denied = problem(() => state.nft.apply([{ kind: 'remove', table: 'owned' }]));
      const unowned = problem(() => own.apply([{ ...owned, table: 'holdfast-objects' }]));
      own.close();
      const adopted = problem(() => state.nft.apply([owned]));
      return { denied, unowned, adopted, gone: problem(() => state.nft.apply([{ kind: 'remove', table: 'owned' }])) };
    });
    // Before Linux 6.9 a table cannot outlive its owner.
    if (said === undefined) return;
    expect(said).toEqual({
      denied: 'EPERM apply: the table owned is owned by another process (netlink port PORT): Operation not permitted',
      unowned:
        'EOPNOTSUPP apply: the table holdfast-objects was made without an owner: it can be owned only when it is removed and made again: Operation not supported',
      adopted: 'done',
      gone: 'done',
    });
  });
});
