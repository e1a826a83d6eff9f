import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { type Change, revision } from '../../../src/domain/log/model.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';
import { drop, health, hidden, options, put, RemoteRig } from '../../support/remote-rig.js';

const many = (count: number) => Array.from({ length: count }, (_, i) => put(`s${i}`));

async function started(...changes: readonly Change[]) {
  const rig = new RemoteRig();
  if (changes.length > 0) await rig.write(...changes);
  await rig.start();
  return rig;
}

describe('following', () => {
  test('a snapshot, then every entry of which something is seen; others only move the cursor on', async () => {
    const rig = await started(put('a'), hidden('x'));
    expect([rig.held(), rig.consumer.state.revision]).toEqual(['a@1', 1n]);
    await rig.write(hidden('y'));
    await rig.write(put('b'), hidden('z'));
    await rig.write(drop('a'));
    expect([rig.held(), rig.consumer.state.revision, rig.told]).toEqual(['b@3', 4n, ['+a', '+b', '-a']]);
    await rig.write(hidden('y', '2'));
    expect(rig.consumer.state.revision).toBe(4n);
    await rig.clock.advance(5_000);
    expect(rig.consumer.state.cursor).toEqual(await rig.log.inner.head(options));
    await rig.consumer.stop(options.signal);
  });

  test('a cut stream is taken up where it ended, without a snapshot', async () => {
    const rig = await started(put('a'));
    await rig.write(put('b'));
    rig.log.cut();
    await rig.write(put('c'));
    expect(rig.held()).toBe('a@1 b@2');
    await rig.clock.advance(1_000);
    expect([rig.held(), rig.log.snapshots]).toEqual(['a@1 b@2 c@3', 1]);
    await rig.consumer.stop(options.signal);
  });

  test.each(['log.compacted', 'log.slow'] as const)('%s: a snapshot, which removes what it lacks', async (code) => {
    const rig = await started(put('a'), put('b'));
    await rig.clock.advance(0);
    const hole = rig.log.watch.bind(rig.log);
    let told = false;
    rig.log.watch = (from, call) => {
      if (told) return hole(from, call);
      told = true;
      throw new AgentError(code, { problem: 'told to' });
    };
    await rig.write(drop('a'));
    rig.log.cut();
    await rig.write(drop('b'), put('c'));
    await rig.clock.advance(1_000);
    expect([rig.held(), rig.log.snapshots]).toEqual(['c@3', 2]);
    await rig.consumer.stop(options.signal);
  });

  test('while nothing can be reached it serves on, tries again with growing gaps, and catches up', async () => {
    const rig = await started(put('a'));
    rig.log.down();
    await rig.write(put('b'));
    await rig.clock.advance(600_000);
    const tries = rig.logger.lines.filter(({ message }) => message.includes('failed')).length;
    expect(tries).toBeGreaterThan(8);
    expect(tries).toBeLessThan(25);
    expect(rig.held()).toBe('a@1');
    rig.log.up();
    await rig.clock.advance(60_000);
    expect(rig.held()).toBe('a@1 b@2');
    await rig.consumer.stop(options.signal);
  });

  test('a control plane that the link has found again is asked at once, whatever the back-off has come to', async () => {
    const rig = await started(put('a'));
    rig.log.down();
    await rig.write(put('b'));
    await rig.clock.advance(600_000);
    rig.log.up();
    rig.consumer.reachable();
    await rig.clock.advance(0);
    expect(rig.held()).toBe('a@1 b@2');
    await rig.consumer.stop(options.signal);
  });

  test('a control plane without a log: the node is ready, nothing is wrong, and it asks once a minute', async () => {
    const rig = new RemoteRig();
    rig.log.down(new AgentError('log.not_offered', { problem: 'told to' }));
    await rig.start();
    await rig.consumer.ready(options.signal);
    await rig.clock.advance(600_000);
    expect([rig.consumer.problems(), rig.consumer.ageMs()]).toEqual([[], 0]);
    expect(rig.logger.lines.filter(({ message }) => message.includes('has no log'))).toHaveLength(1);
    await rig.write(put('a'));
    rig.log.up();
    await rig.clock.advance(60_000);
    expect(rig.held()).toBe('a@1');
    await rig.consumer.stop(options.signal);
  });

  test('a server that always asks for a snapshot is no busy loop', async () => {
    const rig = await started(put('a'));
    const never = () => {
      throw new AgentError('log.compacted', { problem: 'told to' });
    };
    rig.log.watch = never;
    rig.log.cut();
    await rig.clock.advance(60_000);
    expect(rig.log.snapshots).toBeLessThan(20);
    await rig.consumer.stop(options.signal);
  });

  test('reached: by an entry as by a bookmark; stop ends what runs, and may be called twice', async () => {
    const rig = await started(put('a'));
    await rig.consumer.reached(revision(1n), options);
    let reached = false;
    void rig.consumer.reached(revision(2n), options).then(() => {
      reached = true;
    });
    await rig.write(hidden('x'));
    expect(reached).toBe(false);
    await rig.clock.advance(5_000);
    expect(reached).toBe(true);
    await rig.consumer.stop(options.signal);
    await rig.consumer.stop(options.signal);
    await rig.write(put('late'));
    await rig.clock.advance(100_000);
    expect([rig.held(), rig.clock.sleepers, rig.log.streams]).toEqual(['a@1', 0, 0]);
  });
});

describe('J1: the view is kept', () => {
  test('a restart without the control plane serves it at once', async () => {
    const rig = await started(put('a'), put('b'));
    await rig.write(put('c'));
    await rig.clock.advance(2_000);
    rig.log.down();
    await rig.restart();
    await rig.consumer.ready(options.signal);
    expect([rig.held(), rig.told]).toEqual(['a@1 b@1 c@2', ['+a +b +c']]);
    rig.log.up();
    await rig.write(drop('a'));
    await rig.clock.advance(60_000);
    expect([rig.held(), rig.log.snapshots]).toEqual(['b@1 c@2', 1]);
    await rig.consumer.stop(options.signal);
  });

  test('at most one commit a second, and only now and then when nothing changes', async () => {
    const rig = await started(put('a'));
    await rig.clock.advance(1_000);
    const before = rig.store.commits;
    for (let i = 0; i < 50; i += 1) {
      await rig.write(put('a', { limits: { connections: i + 1 } }));
      await rig.clock.advance(100);
    }
    expect(rig.store.commits - before).toBeGreaterThanOrEqual(4);
    expect(rig.store.commits - before).toBeLessThanOrEqual(6);
    await rig.clock.advance(2_000);
    const idle = rig.store.commits;
    await rig.clock.advance(60_000);
    expect(rig.store.commits - idle).toBeGreaterThanOrEqual(4);
    expect(rig.store.commits - idle).toBeLessThanOrEqual(6);
    await rig.consumer.stop(options.signal);
  });

  test('a crash costs a replay: what was not stored is read again', async () => {
    const rig = await started(put('a'));
    await rig.clock.advance(1_000);
    await rig.write(put('b'));
    await rig.restart({ crash: true });
    await rig.clock.advance(0);
    expect([rig.held(), rig.told, rig.log.snapshots]).toEqual(['a@1 b@2', ['+a', '+b'], 1]);
    await rig.consumer.stop(options.signal);
  });

  test('a server that refuses the stream is a problem in status, in its own words, until a frame comes', async () => {
    const rig = await started(put('a'));
    expect(rig.consumer.problems()).toEqual([]);
    const since = rig.clock.now();
    rig.log.down(new AgentError('log.denied', { problem: 'DUPLICATE_NODE: web is the node n1 already' }));
    await rig.clock.advance(30_000);
    const [problem, ...others] = rig.consumer.problems();
    expect({ ...problem, others }).toMatchObject({
      subject: 'log',
      reason: 'changes do not arrive: DUPLICATE_NODE: web is the node n1 already',
      others: [],
    });
    expect(problem?.since).toBeGreaterThanOrEqual(since);
    expect(problem?.since).toBeLessThan(since + 5_000);
    rig.log.up();
    await rig.clock.advance(120_000);
    expect(rig.consumer.problems()).toEqual([]);
    await rig.consumer.stop(options.signal);
  });

  test('K: a full disk is a problem in status, the view goes on in memory and is stored when there is space', async () => {
    const rig = await started(put('a'));
    await rig.clock.advance(1_000);
    rig.store.failNext(3);
    await rig.write(put('b'));
    await rig.clock.advance(1_000);
    expect(rig.consumer.problems()).toMatchObject([{ subject: 'log', reason: expect.stringContaining('cannot be stored') }]);
    await rig.write(put('b', { limits: { connections: 2 } }), put('c'));
    expect(rig.held()).toBe('a@1 b@3 c@3');
    await rig.clock.advance(20_000);
    expect(rig.consumer.problems()).toEqual([]);
    expect(rig.store.dump()).toMatch(/^3: service\/default\/a=.*@1 service\/default\/b=.*@3 service\/default\/c=.*@3$/);
    await rig.consumer.stop(options.signal);
  });

  test('K: a disk from which nothing can be read at the start', async () => {
    const rig = new RemoteRig();
    rig.store.failNext(2);
    await rig.write(put('a'));
    await rig.start();
    expect(rig.held()).toBe('a@1');
    await rig.clock.advance(30_000);
    expect(rig.store.dump()).toMatch(/^1: service\/default\/a/);
    await rig.consumer.stop(options.signal);
  });

  test('K: a view that was found damaged is stored anew from a snapshot', async () => {
    const rig = await started(put('a'));
    await rig.clock.advance(1_000);
    rig.store.lose();
    await rig.write(put('b'));
    await rig.clock.advance(3_000);
    expect([rig.held(), rig.log.snapshots]).toEqual(['a@1 b@2', 2]);
    expect(rig.store.dump()).toMatch(/^2: .*a=.*@1 .*b=.*@2$/);
    await rig.consumer.stop(options.signal);
  });

  test('a stored view that cannot be read by this program is not used', async () => {
    const rig = await started(put('a'));
    await rig.clock.advance(1_000);
    const { view } = rig.file;
    if (view !== undefined) rig.file.view = { ...view, items: view.items.map((item) => ({ ...item, value: '{' })) };
    await rig.restart();
    expect(rig.held()).toBe('a@1');
    expect(rig.logger.dump()).toContain('the stored view cannot be used');
    await rig.consumer.stop(options.signal);
  });
});

describe('J2, J3: freshness', () => {
  const refusing = put('careful', { onStale: 'refuse' });

  test('fresh after two bookmarks, stale 30 s after the last sign, and the services that it matters to are told', async () => {
    const rig = await started(put('a'), refusing);
    expect(rig.consumer.fresh()).toBe(false);
    await rig.clock.advance(5_000);
    expect(rig.consumer.fresh()).toBe(false);
    await rig.clock.advance(5_000);
    expect([rig.consumer.fresh(), rig.consumer.ageMs(), rig.told]).toEqual([true, 0, ['+a +careful', 'default/careful']]);
    rig.log.down();
    await rig.clock.advance(30_000);
    expect([rig.consumer.fresh(), rig.consumer.ageMs()]).toEqual([true, 30_000]);
    await rig.clock.advance(1_000);
    expect([rig.consumer.fresh(), rig.told.at(-1)]).toEqual([false, 'default/careful']);
    rig.log.up();
    await rig.clock.advance(90_000);
    expect(rig.consumer.fresh()).toBe(true);
    await rig.consumer.stop(options.signal);
  });

  test('how long it may be unconfirmed can be changed meanwhile', async () => {
    const rig = await started(put('a'), refusing);
    await rig.clock.advance(10_000);
    rig.log.down();
    rig.consumer.setStaleAfter(60_000);
    await rig.clock.advance(59_000);
    expect(rig.consumer.fresh()).toBe(true);
    rig.consumer.setStaleAfter(5_000);
    await rig.clock.advance(1_000);
    expect([rig.consumer.fresh(), rig.told.at(-1)]).toEqual([false, 'default/careful']);
    await rig.consumer.stop(options.signal);
  });

  test('idle it stays fresh', async () => {
    const rig = await started(refusing);
    await rig.clock.advance(3_600_000);
    expect(rig.consumer.fresh()).toBe(true);
    expect(rig.told).toHaveLength(2);
    await rig.consumer.stop(options.signal);
  });

  test('a server that does not know its own store to be current makes it stale', async () => {
    const rig = await started(refusing);
    await rig.clock.advance(10_000);
    rig.log.aged(31_000);
    await rig.clock.advance(5_000);
    expect(rig.consumer.fresh()).toBe(false);
    await rig.consumer.stop(options.signal);
  });

  test.each([
    { name: 'a quick restart is fresh for what is left of the 30 s', goneMs: 10_000, fresh: true },
    { name: 'after a minute it is stale from the first moment', goneMs: 60_000, fresh: false },
    { name: 'a wall clock that was set back makes it stale', goneMs: -60_000, fresh: false },
  ])('J3: $name', async ({ goneMs, fresh }) => {
    const rig = await started(refusing);
    await rig.clock.advance(20_000);
    rig.log.down();
    const before = rig.consumer;
    await before.stop(options.signal);
    rig.clock.setWall(rig.clock.now() + goneMs);
    await rig.restart();
    expect([rig.held(), rig.consumer.fresh()]).toEqual(['careful@1', fresh]);
    await rig.clock.advance(31_000);
    expect(rig.consumer.fresh()).toBe(false);
    await rig.consumer.stop(options.signal);
  });
});

describe('J4: the guard against a mass removal', () => {
  const problem = {
    subject: 'log',
    reason: expect.stringMatching(/^MASS_REMOVAL_HELD: /),
    remedy: expect.stringContaining('holdfast resync --accept'),
  };

  async function withHeld() {
    const rig = await started(...many(20));
    await rig.clock.advance(10_000);
    await rig.replaceLog(put('s1'), put('new'));
    await rig.clock.advance(1_000);
    return rig;
  }

  test('another log is held back: the old view serves, status says so, and it goes stale', async () => {
    const rig = await withHeld();
    expect(rig.held().split(' ')).toHaveLength(20);
    expect(rig.consumer.problems()).toMatchObject([problem]);
    await rig.clock.advance(60_000);
    expect([rig.consumer.fresh(), rig.consumer.counts().held]).toEqual([false, true]);
    await rig.consumer.stop(options.signal);
  });

  test('an entry about a service confirms it; health that nodes write does not', async () => {
    const rig = await withHeld();
    await rig.write(health('s1', '{"healthy":true,"node":"n","reason":"","since":1}'));
    expect(rig.held().split(' ')).toHaveLength(20);
    await rig.write(put('newer'));
    expect([rig.held(), rig.consumer.problems()]).toEqual(['new@1 newer@3 s1@1', []]);
    expect([...rig.consumer.state.health.services()]).toEqual(['default/s1']);
    await rig.write(drop('new'));
    expect(rig.held()).toBe('newer@3 s1@1');
    await rig.clock.advance(2_000);
    expect(rig.store.dump()).toMatch(/^4: /);
    await rig.consumer.stop(options.signal);
  });

  test('an operator confirms it, also while nothing can be reached', async () => {
    const rig = await withHeld();
    rig.log.down();
    expect(await rig.consumer.resync({ accept: true }, options)).toEqual({ outcome: 'applied', revision: 1n });
    expect(rig.held()).toBe('new@1 s1@1');
    rig.log.up();
    await rig.write(put('more'));
    await rig.clock.advance(60_000);
    expect(rig.held()).toBe('more@2 new@1 s1@1');
    await rig.consumer.stop(options.signal);
  });

  test('what is held back outlives a cut, a restart finds it again', async () => {
    const rig = await withHeld();
    rig.log.cut();
    await rig.clock.advance(2_000);
    expect([rig.log.snapshots, rig.consumer.counts().held]).toEqual([2, true]);
    await rig.restart();
    await rig.clock.advance(2_000);
    expect([rig.held().split(' ').length, rig.consumer.counts().held]).toEqual([20, true]);
    await rig.consumer.stop(options.signal);
  });

  test('more than half and ten of the services of the same log, by a snapshot', async () => {
    const rig = await started(...many(20));
    rig.log.down();
    await rig.write(...many(15).map(({ key }) => ({ key, value: null })));
    const compacted = rig.log.watch.bind(rig.log);
    let told = false;
    rig.log.watch = (from, call) => {
      if (told) return compacted(from, call);
      told = true;
      throw new AgentError('log.compacted', { problem: 'told to' });
    };
    rig.log.up();
    await rig.clock.advance(60_000);
    expect(rig.held().split(' ')).toHaveLength(20);
    expect(rig.consumer.problems()).toMatchObject([{ ...problem, reason: expect.stringContaining('15 of 20') }]);
    expect(await rig.consumer.resync({ accept: true }, options)).toMatchObject({ outcome: 'applied' });
    expect(rig.held().split(' ')).toHaveLength(5);
    await rig.consumer.stop(options.signal);
  });

  test('a log that was put back from a copy and has gone on since has the same id and another past: held, however often asked', async () => {
    const rig = await started(put('a'), put('b'));
    const { logId } = await rig.log.inner.head(options);
    await rig.clock.advance(10_000);
    rig.log.inner = new FakeOrderedLog({ clock: rig.clock, id: logId });
    for (const name of ['c', 'd', 'e']) await rig.write(put(name));
    rig.log.cut();
    await rig.clock.advance(1_000);
    expect([rig.held(), rig.consumer.counts().held]).toEqual(['a@1 b@1', true]);
    const asked = rig.consumer.resync({ accept: false }, options);
    await rig.clock.advance(1_000);
    expect(await asked).toMatchObject({ outcome: 'held', reason: expect.stringContaining('another past') });
    expect(await rig.consumer.resync({ accept: true }, options)).toMatchObject({ outcome: 'applied' });
    expect(rig.held()).toBe('c@1 d@2 e@3');
    await rig.consumer.stop(options.signal);
  });

  test('resync without accept takes a snapshot and is held like any other; with it, it is applied', async () => {
    const rig = await started(...many(12));
    const plain = rig.consumer.resync({ accept: false }, options);
    await rig.clock.advance(0);
    expect(await plain).toEqual({ outcome: 'applied', revision: 1n });
    expect(rig.log.snapshots).toBe(2);
    rig.log.down();
    await rig.replaceLog(put('s1'));
    const accepted = rig.consumer.resync({ accept: true }, options);
    rig.log.up();
    await rig.clock.advance(60_000);
    expect(await accepted).toEqual({ outcome: 'applied', revision: 1n });
    await rig.replaceLog(put('s2'));
    const asked = rig.consumer.resync({ accept: false }, options);
    await rig.clock.advance(60_000);
    expect(await asked).toMatchObject({ outcome: 'held' });
    const aborted = AbortSignal.abort(new Error('enough'));
    await expect(rig.consumer.resync({ accept: false }, { signal: aborted })).rejects.toThrow('enough');
    await rig.consumer.stop(options.signal);
  });
});

type Step =
  | { readonly do: 'put' | 'drop' | 'hide'; readonly name: string }
  | { readonly do: 'cut' | 'down' | 'up' | 'restart' | 'crash' | 'accept' }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'replace'; readonly names: readonly string[] };

const name = fc.constantFrom('a', 'b', 'c', 'd');
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('put', 'drop', 'hide'), name }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('cut', 'down', 'up', 'restart', 'crash', 'accept') }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait'), ms: fc.nat(8_000) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('replace'), names: fc.uniqueArray(name) }) },
);

async function take(rig: RemoteRig, each: Step): Promise<void> {
  switch (each.do) {
    case 'put':
      return rig.write(put(each.name, { limits: { connections: 1 + (rig.clock.monotonic() % 1_000) } }));
    case 'drop':
      return rig.write(drop(each.name));
    case 'hide':
      return rig.write(hidden(each.name, String(rig.clock.monotonic())));
    case 'wait':
      return rig.clock.advance(each.ms);
    case 'replace':
      return rig.replaceLog(...each.names.map((one) => put(one)));
    case 'cut':
      return rig.log.cut();
    case 'down':
      return rig.log.down();
    case 'up':
      return rig.log.up();
    case 'restart':
    case 'crash':
      return rig.restart({ crash: each.do === 'crash' });
    case 'accept':
      // It waits for the control plane, which may be out of reach.
      void rig.consumer.resync({ accept: true }, options).catch(() => {});
      return rig.clock.advance(0);
  }
}

test('law: whatever was cut, replaced and restarted, in the end the view is what the control plane lets it see', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const rig = await started(put('a'));
      for (const each of steps) await take(rig, each);
      rig.log.up();
      await rig.clock.advance(130_000);
      if (rig.consumer.counts().held) await rig.consumer.resync({ accept: true }, options);
      await rig.clock.advance(10_000);
      expect(rig.held()).toBe(await rig.wanted());
      expect(rig.consumer.state.cursor).toEqual(await rig.log.inner.head(options));
      expect(rig.consumer.fresh()).toBe(true);
      expect(rig.file.view?.cursor.revision).toBe(rig.consumer.state.revision);
      await rig.consumer.stop(options.signal);
      expect(rig.clock.sleepers).toBe(0);
    }),
    { numRuns: 150 },
  );
});
