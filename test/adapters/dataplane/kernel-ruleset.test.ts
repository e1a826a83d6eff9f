import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KernelCompiler } from '../../../src/domain/dataplane/kernel-compiler.js';
import type { L4Listener, ListenerId } from '../../../src/domain/dataplane/model.js';
import { FilterSpace } from '../../support/filter-space.js';
import { filterSettings, kernelEndpoint, kernelListener } from '../../support/kernel-listeners.js';

/** How many answers came from each back end; addresses stand for themselves. */
function spread(answers: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const answer of answers) {
    const [target = ''] = answer.split(' ');
    counts[target] = (counts[target] ?? 0) + 1;
  }
  return counts;
}

const three = (net: string) => [kernelEndpoint(`${net}2`), kernelEndpoint(`${net}3`), kernelEndpoint(`${net}4`)];

describe.skipIf(process.getuid?.() !== 0)('the compiled ruleset in a kernel', () => {
  let space: FilterSpace;
  const compiler = new KernelCompiler(filterSettings);
  /** Listeners of the tests before. */
  const earlier: ListenerId[] = [];
  const put = async (...upsert: readonly L4Listener[]) => {
    earlier.push(...upsert.map(({ id }) => id));
    await space.apply(compiler.update({ upsert, remove: [] }));
  };

  beforeAll(async () => {
    space = await FilterSpace.make('rules');
    await space.load(compiler.load(new Map()));
  });
  afterAll(() => space[Symbol.asyncDispose]());

  test.each([
    ['IPv4', 'tcp', '10.192.0.2', '10.9.2.', '10.9.1.2'],
    ['IPv4', 'udp', '10.192.0.2', '10.9.2.', '10.9.1.2'],
    ['IPv6', 'tcp', 'fd96::2', 'fd09:2::', 'fd09:1::2'],
    ['IPv6', 'udp', 'fd96::2', 'fd09:2::', 'fd09:1::2'],
  ] as const)('%s %s: from another host, whose address is kept, and from the node', async (_, protocol, vip, net, client) => {
    await put(kernelListener(vip, three(net), { protocol }));
    const answers = await space.ask('client', protocol, vip, 80, 60, client);
    expect(Object.keys(spread(answers)).sort()).toEqual([`${net}2`, `${net}3`, `${net}4`]);
    expect(new Set(answers.map((answer) => answer.split(' ')[1]))).toEqual(new Set([client]));
    const own = await space.ask('node', protocol, vip, 80, 60);
    expect(Object.keys(spread(own)).sort()).toEqual([`${net}2`, `${net}3`, `${net}4`]);
  });

  test('an endpoint reaches itself through its service, as the node', async () => {
    await put(kernelListener('10.192.0.3', [kernelEndpoint('10.9.2.2')]));
    expect(spread(await space.ask('back', 'tcp', '10.192.0.3', 80, 10, '10.9.2.2'))).toEqual({ '10.9.2.2': 10 });
    await put(kernelListener('fd96::3', [kernelEndpoint('fd09:2::2')]));
    expect(spread(await space.ask('back', 'tcp', 'fd96::3', 80, 10, 'fd09:2::2'))).toEqual({ 'fd09:2::2': 10 });
  });

  test('what passes from another host to another host comes from the node, so that replies pass it too', async () => {
    await put(kernelListener('10.192.0.4', [kernelEndpoint('10.9.2.5', 1, false)]));
    expect(await space.ask('client', 'tcp', '10.192.0.4', 80, 5, '10.9.1.2')).toEqual(Array(5).fill('10.9.2.5 10.9.2.1'));
  });

  test.each(['client', 'node', 'back'] as const)(
    'without an endpoint, at an unknown address or port, %s is refused at once, also where a program listens on all addresses',
    async (host) => {
      await put(kernelListener('10.192.0.5', []), kernelListener('10.192.0.5', [], { protocol: 'udp' }));
      for (const [vip, port] of [
        ['10.192.0.5', 80],
        ['10.192.200.1', 80],
        ['10.192.0.2', 81],
        ['10.192.0.2', 8080],
      ] as const) {
        expect(await space.ask(host, 'tcp', vip, port, 4), `tcp ${vip}:${port}`).toEqual(Array(4).fill('refused'));
        expect(await space.ask(host, 'udp', vip, port, 1), `udp ${vip}:${port}`).toEqual(['refused']);
      }
    },
  );

  test('what the services are not is left alone', async () => {
    expect(spread(await space.ask('client', 'tcp', '10.9.2.2', 8080, 4))).toEqual({ '10.9.2.2': 4 });
    expect(await space.ask('client', 'tcp', '10.9.2.2', 81, 1)).toEqual(['refused']);
  });

  test.each([
    ['10.192.0.6', '10.9.2.', '10.9.1.'],
    ['fd96::6', 'fd09:2::', 'fd09:1::'],
  ])('source-hash: one client, one endpoint, and only those of an endpoint that goes move (%s)', async (vip, net, client) => {
    await put(kernelListener(vip, three(net), { algorithm: 'source-hash' }));
    const before = new Map<string, string>();
    for (const last of [2, 3, 4]) {
      const answers = spread(await space.ask('client', 'tcp', vip, 80, 20, `${client}${last}`));
      expect(Object.keys(answers).length).toBe(1);
      before.set(`${client}${last}`, Object.keys(answers)[0] ?? '');
    }
    const gone = [...before.values()][0] ?? '';
    await put(
      kernelListener(
        vip,
        three(net).filter((each) => each.address !== gone),
        { algorithm: 'source-hash' },
      ),
    );
    for (const [from, target] of before) {
      const [now = ''] = Object.keys(spread(await space.ask('client', 'tcp', vip, 80, 5, from)));
      if (target === gone) expect(now).not.toBe(gone);
      else expect(now).toBe(target);
    }
  });

  test.each([
    ['10.192.0.7', '10.9.2.', '10.9.1.2', 'affinity4'],
    ['fd96::7', 'fd09:2::', 'fd09:1::2', 'affinity6'],
  ] as const)('affinity: a client keeps its endpoint until it has been away for the time (%s)', async (vip, net, client, set) => {
    await put(kernelListener(vip, three(net), { affinityMs: 2_000 }));
    const first = spread(await space.ask('client', 'tcp', vip, 80, 40, client));
    expect(Object.keys(first).length).toBe(1);
    expect((await space.elements(set)).length).toBe(1);
    await expect.poll(() => space.elements(set), { timeout: 10_000 }).toEqual([]);
    expect(await space.chains()).toContain(set === 'affinity4' ? 'a4-2' : 'a6-2');
    await space.apply(compiler.update({ upsert: [], remove: [kernelListener(vip, []).id] }));
    expect(await space.chains()).not.toContain(set === 'affinity4' ? 'a4-2' : 'a6-2');
  });

  test('nft(8) can list it', async () => {
    expect(space.list()).toContain('chain services4');
  });

  test('while classes and slots change all the time, every connection finds an endpoint', async () => {
    const all = three('10.9.2.');
    const shapes = [
      all,
      all.slice(0, 1),
      all.slice(1),
      [kernelEndpoint('10.9.2.2', 5), kernelEndpoint('10.9.2.3', 2)],
      [kernelEndpoint('10.9.2.2', 100), kernelEndpoint('10.9.2.4', 99)],
    ];
    await put(kernelListener('10.192.0.8', all));
    const asking = space.ask('client', 'tcp', '10.192.0.8', 80, 3_000);
    let over = false;
    void asking.finally(() => {
      over = true;
    });
    let changes = 0;
    for (; !over; changes++) await put(kernelListener('10.192.0.8', shapes[changes % shapes.length] ?? all));
    const answers = spread(await asking);
    expect(Object.keys(answers).filter((target) => !target.startsWith('10.9.2.'))).toEqual([]);
    expect(changes).toBeGreaterThan(50);
  });

  test('after 300 random edits the kernel has what a compiler has that never saw them', async () => {
    const table = new Map<ListenerId, L4Listener>();
    const random = (below: number) => Math.floor(Math.random() * below);
    for (let edit = 0; edit < 300; edit++) {
      const v6 = random(2) === 0;
      const net = v6 ? 'fd09:2::' : '10.9.2.';
      const endpoints = three(net)
        .filter(() => random(3) > 0)
        .map((each) => ({ ...each, weight: 1 + random(3), local: random(2) === 0 }));
      const changed = kernelListener(`${v6 ? 'fd96::1' : '10.192.1.'}${random(9)}`, endpoints, {
        protocol: random(2) === 0 ? 'tcp' : 'udp',
        algorithm: random(4) === 0 ? 'source-hash' : 'random',
        affinityMs: random(4) === 0 ? 1_000 * (1 + random(3)) : 0,
        path: random(5) === 0 ? 'proxy' : 'kernel',
      });
      const remove = random(4) === 0 ? [...table.keys()].slice(0, 1).filter((id) => id !== changed.id) : [];
      for (const id of remove) table.delete(id);
      table.set(changed.id, changed);
      await space.apply(compiler.update({ upsert: [changed], remove }));
    }
    const sets = (['service', 'endpoint', 'class', 'local', 'hairpin'] as const).flatMap(
      (name) => [`${name}4`, `${name}6`] as const,
    );
    // Of this test alone.
    await space.apply(compiler.update({ upsert: [], remove: earlier }));
    await using fresh = await FilterSpace.make('rules-fresh');
    await fresh.load(new KernelCompiler(filterSettings).load(table));
    for (const set of sets) expect(await space.elements(set), set).toEqual(await fresh.elements(set));
    expect(await space.chains()).toEqual(await fresh.chains());
  });
});
