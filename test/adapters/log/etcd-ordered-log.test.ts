import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test as anywhere, beforeEach, describe, expect } from 'vitest';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { EtcdClient } from '../../../src/adapters/etcd/etcd-client.js';
import { deleteOp, endOf, putOp } from '../../../src/adapters/etcd/etcd-messages.js';
import { EtcdLogRollback } from '../../../src/adapters/log/etcd-log-rollback.js';
import { EtcdOrderedLog } from '../../../src/adapters/log/etcd-ordered-log.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { revision, ZERO_DIGEST, ZERO_REVISION } from '../../../src/domain/log/model.js';
import type { Clock } from '../../../src/ports/clock.js';
import {
  at,
  committed,
  entries,
  head,
  options,
  proposal,
  propose,
  remove,
  set,
  values,
} from '../../contract/ordered-log.support.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { EtcdRig, hasEtcd } from '../../support/etcd-rig.js';
import { eventually } from '../../support/eventually.js';

const test = anywhere.skipIf(!hasEtcd);

const PREFIX = '/holdfast/test/log/';
const undo: (() => Promise<void>)[] = [];
let folder: string;
let etcd: EtcdRig;

const begin = async (members = 1) => {
  etcd = await EtcdRig.start({ members });
  undo.push(() => etcd.stop());
};
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-log-'));
  undo.push(() => rm(folder, { recursive: true, force: true }));
});
afterEach(async () => {
  for (const each of undo.splice(0).reverse()) await each();
});

interface Opening {
  readonly name?: string;
  readonly clock?: Clock;
  readonly client?: EtcdClient;
  readonly prefix?: string;
}

async function replica({ name = 'one', clock = new FakeClock(), client = etcd.client(), prefix = PREFIX }: Opening = {}) {
  const log = new EtcdOrderedLog({ client, prefix, witness: join(folder, 'data', `${name}.witness`), clock });
  undo.push(() => log.close());
  await log.open(options);
  return log;
}

/** Answers are lost after the work was done, as often as a test says; before it, while it is away. */
class LossyClient extends EtcdClient {
  /** So many answers arrive before one is lost. */
  kept = 0;
  lost = 0;
  isAway = false;
  onLost: () => Promise<unknown> = async () => {};

  override async txn(...args: Parameters<EtcdClient['txn']>): ReturnType<EtcdClient['txn']> {
    if (this.isAway) throw new AgentError('store.outcome_unknown', { problem: 'told to be away' });
    const answer = await super.txn(...args);
    if (this.lost <= 0 || this.kept-- > 0) return answer;
    this.lost -= 1;
    await this.onLost();
    throw new AgentError('store.outcome_unknown', { problem: 'told to lose the answer' });
  }

  override async read(...args: Parameters<EtcdClient['read']>): ReturnType<EtcdClient['read']> {
    if (this.isAway) throw new AgentError('store.unavailable', { problem: 'told to be away' });
    return super.read(...args);
  }
}

function lossy(): LossyClient {
  const client = new LossyClient({ endpoints: etcd.urls });
  undo.push(async () => client.close());
  return client;
}

const keys = async (part: string) =>
  (await etcd.client().list(`${PREFIX}${part}`, options))?.kvs.map(({ key }) => key.toString().slice(PREFIX.length)) ?? [];
const start = async (log: EtcdOrderedLog) => ({ logId: (await head(log)).logId, revision: ZERO_REVISION, digest: ZERO_DIGEST });

describe('E1: several replicas', () => {
  test('300 proposals on each of three at once: revisions are dense and unique, and all end with the same', async () => {
    await begin();
    const logs = await Promise.all(['a', 'b', 'c'].map((name) => replica({ name })));
    const results = await Promise.all(
      logs.flatMap((log, r) => Array.from({ length: 300 }, (_, i) => propose(log, set(`k/${i % 20}`, `${r} ${i}`)))),
    );
    const revisions = results.map((result) => (result.outcome === 'committed' ? Number(result.revision) : -1));
    expect(revisions.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 900 }, (_, i) => i + 1));
    const heads = await Promise.all(logs.map(head));
    expect(new Set(heads.map(({ digest }) => digest)).size).toBe(1);
    const seen = await Promise.all(logs.map((log) => values(log)));
    expect(seen[1]).toEqual(seen[0]);
    expect(await values(await replica({ name: 'late' }))).toEqual(seen[0]);
  });

  test('of those who create the same key with the same value at the same time, one alone is told that it has', async () => {
    await begin();
    const clock = new FakeClock();
    const logs = await Promise.all(['a', 'b', 'c'].map((name) => replica({ name, clock })));
    for (let round = 0; round < 20; round += 1) {
      const lock = { changes: [set(`lock/${round}`, 'mine')], preconditions: [at(`lock/${round}`, 0n)] };
      const results = await Promise.all(logs.map((log) => log.propose(lock, options)));
      expect(results.map(({ outcome }) => outcome).sort()).toEqual(['committed', 'conflict', 'conflict']);
    }
  });

  test('E7: "nothing changed" and a conflict are judged on the newest head, not on an old view', async () => {
    await begin();
    const [one, other] = [await replica({ name: 'a' }), await replica({ name: 'b' })];
    for (let i = 1; i <= 20; i += 1) {
      await propose(one, set('a', String(i)));
      expect(await propose(other, set('a', String(i)))).toEqual({ outcome: 'unchanged', revision: BigInt(i) });
    }
    expect(await other.propose({ changes: [remove('a')], preconditions: [at('a', 20n)] }, options)).toEqual(committed(21n));
    expect(await one.propose({ changes: [set('a', '1')], preconditions: [at('a', 20n)] }, options)).toMatchObject({ actual: 0n });
  });

  test('a request is answered once, whichever replica it is repeated on', async () => {
    await begin();
    const [one, other] = [await replica({ name: 'a' }), await replica({ name: 'b' })];
    const request = { ...proposal(set('a', '1')), requestId: 'r1' };
    expect(await one.propose(request, options)).toEqual(committed(1n));
    await propose(one, set('a', '2'));
    expect(await other.propose(request, options)).toEqual(committed(1n));
  });

  test('E13: a cursor that another replica gave is good at once', async () => {
    await begin();
    const [one, other] = [await replica({ name: 'a' }), await replica({ name: 'b' })];
    for (let i = 0; i < 20; i += 1) {
      await propose(one, set('a', `${i} 1`));
      const from = await head(one);
      const watched = entries(other, from, 1);
      await propose(one, set('a', `${i} 2`));
      expect(await watched).toMatchObject([{ changes: [set('a', `${i} 2`)] }]);
    }
  });
});

describe('E4: large proposals', () => {
  const many = (count: number, value: string) => Array.from({ length: count }, (_, i) => set(`k/${i}`, value));

  test('100 changes are one transaction; 101 are staged, seen whole, and brought into the values afterwards', async () => {
    await begin();
    const [one, other] = [await replica({ name: 'a' }), await replica({ name: 'b' })];
    await propose(one, ...many(100, 'inline'));
    expect(await keys('stage/')).toEqual([]);
    const watched = entries(other, await head(other), 2);
    await propose(one, ...many(450, 'staged'));
    await propose(other, remove('k/0'), set('k/1', 'after'));
    expect((await watched).map(({ changes }) => changes.length)).toEqual([450, 2]);
    await eventually(() => keys('kv/').then(({ length }) => length)).toBe(449);
    await propose(one, set('k/2', 'inline again'));
    const expected = await values(one);
    expect(expected).toContain('k/1=after@3');
    expect(await values(await replica({ name: 'late' }))).toEqual(expected);
  });

  test('a replica that dies before the values are brought up: the next one reads them right, and brings them up', async () => {
    await begin();
    const client = lossy();
    const one = await replica({ client });
    await propose(one, set('k/0', 'old'), set('gone', '1'));
    // The stage and the commit go through, and nothing after them.
    client.kept = 1;
    client.lost = 1;
    client.onLost = async () => {
      client.isAway = true;
    };
    const dying = propose(one, ...many(300, 'new'), remove('gone'));
    dying.catch(() => {});
    await eventually(() => client.isAway).toBe(true);
    expect(await keys('kv/')).toEqual(['kv/gone', 'kv/k/0']);
    const other = await replica({ name: 'other' });
    const expected = await values(other);
    expect(expected).toHaveLength(300);
    await eventually(() => keys('kv/').then(({ length }) => length)).toBe(expected.length);
    expect(await values(await replica({ name: 'third' }))).toEqual(expected);
    await one.close();
    await expect(dying).rejects.toMatchObject({ code: 'log.outcome_unknown' });
  });

  test('a stage that no entry refers to goes after 10 min, one that is needed stays', async () => {
    await begin();
    const clock = new FakeClock();
    const log = await replica({ clock });
    await propose(log, ...many(200, 'x'));
    await etcd.client().txn({ compare: [], success: [putOp(`${PREFIX}stage/left-over/0000`, 'x')], failure: [] }, options);
    const orphans = () => keys('stage/').then((found) => found.filter((key) => key.includes('left-over')).length);
    for (let minute = 0; minute < 9; minute += 1) {
      await clock.advance(60_000);
      await log.head(options);
    }
    expect(await orphans()).toBe(1);
    await expect
      .poll(
        async () => {
          await clock.advance(30_000);
          return orphans();
        },
        { timeout: 10_000 },
      )
      .toBe(0);
    expect(await keys('stage/')).toHaveLength(1);
    expect(await entries(log, await start(log), 1)).toMatchObject([{ revision: 1n }]);
  });

  test('a value that etcd cannot hold is refused with its size, and leaves no trace', async () => {
    await begin();
    const log = await replica();
    await expect(propose(log, set('a', 'x'.repeat(1_400_001)))).rejects.toMatchObject({ code: 'log.too_large' });
    expect(await propose(log, set('a', 'ü'.repeat(700_000)))).toEqual(committed(1n));
    expect(await values(await replica({ name: 'late' }))).toHaveLength(1);
  });
});

describe('E7: unknown outcomes', () => {
  test('an answer that is lost is asked for again: the entry is there once, and is known as its own', async () => {
    await begin();
    const client = lossy();
    const log = await replica({ client, clock: new SystemClock({ unref: true }) });
    const other = await replica({ name: 'other' });
    client.lost = 1;
    client.onLost = () => propose(other, set('b', '1'));
    const lock = { changes: [set('a', '1')], preconditions: [at('a', 0n)] };
    expect(await log.propose(lock, options)).toEqual(committed(1n));
    expect(await values(log)).toEqual(['a=1@1', 'b=1@2']);
  });

  test('E10: what stays unknown for 4.5 s is answered so; the request id tells later; what waited is not written', async () => {
    await begin();
    const client = lossy();
    const log = await replica({ client, clock: new SystemClock({ unref: true }) });
    client.lost = 1;
    client.onLost = async () => {
      client.isAway = true;
    };
    const request = { ...proposal(set('a', '1')), requestId: 'r1' };
    const begun = performance.now();
    const first = log.propose(request, options);
    first.catch(() => {});
    await eventually(() => client.isAway).toBe(true);
    const second = propose(log, set('b', '1'));
    await expect(first).rejects.toMatchObject({ code: 'log.outcome_unknown', facts: { requestId: 'r1' } });
    await expect(second).rejects.toMatchObject({ code: 'log.not_written' });
    expect(performance.now() - begun).toBeLessThan(5_500);
    client.isAway = false;
    expect(await log.propose(request, options)).toEqual(committed(1n));
    expect(await values(log)).toEqual(['a=1@1']);
  });
});

test('E10: without etcd writes fail within 5 s, reads are answered from the view, and a problem says so until it is back', async () => {
  await begin();
  const log = await replica({ clock: new SystemClock({ unref: true }) });
  await propose(log, set('a', '1'));
  await etcd.kill(0);
  await values(log);
  const begun = performance.now();
  await expect(propose(log, set('a', '2'))).rejects.toMatchObject({ code: 'log.not_written' });
  expect(performance.now() - begun).toBeLessThan(5_500);
  expect(await values(log)).toEqual(['a=1@1']);
  expect(log.problems()).toMatchObject([{ subject: 'log-store' }]);
  etcd.restart(0);
  await etcd.ready();
  expect(await propose(log, set('a', '3'))).toEqual(committed(2n));
  expect(log.problems()).toEqual([]);
});

test('E9: a bookmark says how old the view is; a watch that needs etcd ends with log.closed while that is away', async () => {
  await begin();
  const clock = new FakeClock();
  const log = await replica({ clock });
  await propose(log, set('a', '1'));
  const from = await head(log);
  const watcher = log.watch(from, options)[Symbol.asyncIterator]();
  const frame = watcher.next();
  await etcd.kill(0);
  await clock.advance(5_000);
  expect((await frame).value).toMatchObject({ kind: 'bookmark', revision: 1n, ageMs: 5_000 });
  const ahead = log.watch({ ...from, revision: revision(7n) }, options)[Symbol.asyncIterator]();
  await expect(ahead.next()).rejects.toMatchObject({ code: 'log.closed' });
  await watcher.return?.();
});

test('of three members one dies each time: nothing that was answered is lost, and every watcher sees all of it', async () => {
  await begin(3);
  const clock = new SystemClock({ unref: true });
  const [one, other] = [await replica({ name: 'a', clock }), await replica({ name: 'b', clock })];
  const from = await start(other);
  const answered = new Map<number, string>();
  for (let i = 0; i < 60; i += 1) {
    if (i % 20 === 10) await etcd.kill((i - 10) / 20);
    if (i % 20 === 15) etcd.restart((i - 15) / 20);
    const request = { ...proposal(set(`k/${i}`, String(i))), requestId: `r${i}` };
    for (;;) {
      const result = await one.propose(request, options).catch(() => undefined);
      if (result?.outcome === 'committed') {
        answered.set(Number(result.revision), `k/${i}`);
        break;
      }
    }
  }
  expect([...answered.keys()]).toEqual(Array.from({ length: 60 }, (_, i) => i + 1));
  const seen = await entries(other, from, 60);
  expect(seen.map(({ revision, changes }) => [Number(revision), changes[0]?.key])).toEqual([...answered]);
}, 90_000);

describe('E3: a store that has gone back', () => {
  /** As a snapshot of etcd that is restored: what the log's keys were at a revision of etcd's. */
  async function restore(revision: bigint): Promise<void> {
    const client = etcd.client();
    const then = await client.list(PREFIX, { ...options, revision });
    const success = then?.kvs.map(({ key, value }) => putOp(key.toString(), value)) ?? [];
    await client.txn({ compare: [], success: [deleteOp(PREFIX, endOf(PREFIX))], failure: [] }, options);
    await client.txn({ compare: [], success, failure: [] }, options);
  }

  test('is not served by a machine that has seen more: neither one that runs nor one that starts', async () => {
    await begin();
    const log = await replica();
    await propose(log, set('a', '1'));
    const past = await etcd.revision();
    await propose(log, set('a', '2'));
    const watching = log
      .watch(await head(log), options)
      [Symbol.asyncIterator]()
      .next();
    watching.catch(() => {});
    await restore(past);
    await expect(propose(log, set('a', '3'))).rejects.toMatchObject({ code: 'log.rolled_back' });
    await expect(watching).rejects.toMatchObject({ code: 'log.closed' });
    await expect(values(log)).rejects.toMatchObject({ code: 'log.rolled_back' });
    await log.close();
    await expect(replica()).rejects.toMatchObject({ code: 'log.rolled_back' });
    expect(await values(await replica({ name: 'new machine' }))).toEqual(['a=1@1']);
  });

  test('also when the whole cluster has: it keeps its id, and would be waited for in silence', async () => {
    await begin();
    const log = await replica();
    await propose(log, set('a', '1'));
    await etcd.save();
    await propose(log, set('a', '2'));
    await etcd.putBack();
    await expect(propose(log, set('a', '3'))).rejects.toMatchObject({ code: 'log.rolled_back' });
  });

  test('nor when it has another past of the same length or more, or is another log', async () => {
    await begin();
    const log = await replica();
    await propose(log, set('a', '1'));
    const past = await etcd.revision();
    await propose(log, set('a', '2'));
    await log.close();
    await restore(past);
    const other = await replica({ name: 'other' });
    await propose(other, set('a', 'fork'));
    await expect(replica()).rejects.toMatchObject({ code: 'log.rolled_back' });
    await expect(replica({ prefix: '/holdfast/test2/log/' })).rejects.toMatchObject({ code: 'log.rolled_back' });
  });

  const rollback = (name: string) =>
    new EtcdLogRollback({ client: etcd.client(), prefix: PREFIX, witness: join(folder, 'data', `${name}.witness`) });

  test('is served once that was accepted on one machine: under another id, by all, and no cursor of before leads on', async () => {
    await begin();
    const [one, other] = [await replica(), await replica({ name: 'other' })];
    await propose(one, set('a', '1'));
    const past = await etcd.revision();
    await propose(other, set('a', '2'));
    const former = await head(one);
    await Promise.all([one.close(), other.close()]);
    await restore(past);
    await expect(replica()).rejects.toMatchObject({ code: 'log.rolled_back' });
    const found = await rollback('one').find(options);
    expect(found).toEqual({ seen: { ...former, digest: former.digest }, held: { logId: former.logId, revision: 1n } });
    if (found === undefined) throw new Error('no rollback');
    const id = await rollback('one').accept(found, options);
    expect(id).not.toBe(former.logId);
    expect(await rollback('one').find(options)).toBeUndefined();
    expect(await rollback('other').find(options)).toBeUndefined();
    const again = [await replica(), await replica({ name: 'other' })];
    for (const log of again) {
      expect(await head(log)).toMatchObject({ logId: id, revision: 1n });
      expect(await values(log)).toEqual(['a=1@1']);
      await expect(entries(log, former, 1)).rejects.toMatchObject({ code: 'log.changed' });
    }
    expect(await propose(again[1] ?? one, set('a', '3'))).toEqual(committed(2n));
  });

  test('is refused again when etcd goes back behind what was accepted', async () => {
    await begin();
    const log = await replica();
    await propose(log, set('a', '1'));
    const past = await etcd.revision();
    await propose(log, set('a', '2'));
    await log.close();
    for (let time = 0; time < 2; time += 1) {
      await restore(past);
      await expect(replica()).rejects.toMatchObject({ code: 'log.rolled_back' });
      const found = await rollback('one').find(options);
      if (found === undefined) throw new Error('no rollback');
      await rollback('one').accept(found, options);
    }
    expect(await values(await replica())).toEqual(['a=1@1']);
  });

  test('is not accepted while somebody writes, nor where there is none', async () => {
    await begin();
    expect(await rollback('nobody').find(options)).toBeUndefined();
    const log = await replica();
    await propose(log, set('a', '1'));
    const past = await etcd.revision();
    await propose(log, set('a', '2'));
    expect(await rollback('one').find(options)).toBeUndefined();
    await log.close();
    await restore(past);
    const found = await rollback('one').find(options);
    if (found === undefined) throw new Error('no rollback');
    await propose(await replica({ name: 'new machine' }), set('b', '1'));
    await expect(rollback('one').accept(found, options)).rejects.toMatchObject({ code: 'log.not_written' });
    await restore(1n);
    await expect(rollback('one').find(options)).rejects.toMatchObject({ code: 'log.rolled_back' });
  });
});

test('E8: what retention has dropped is gone from etcd too, and a replica that had been away begins again', async () => {
  await begin();
  const clock = new FakeClock();
  const log = await replica({ clock });
  const late = await replica({ name: 'late', clock });
  const from = await start(log);
  for (let i = 0; i < 10; i += 1) await propose(log, set('a', String(i)));
  clock.setWall(clock.now() + 25 * 3_600_000);
  await propose(log, set('b', '1'));
  expect(await keys('entry/')).toEqual(['entry/00000000000000000011']);
  expect(await values(late)).toEqual(['a=9@10', 'b=1@11']);
  await expect(entries(late, from, 1)).rejects.toMatchObject({ code: 'log.compacted' });
});

test('E8: a replica for which retention came too soon begins again with a snapshot, and so do its watchers', async () => {
  await begin();
  const clock = new FakeClock();
  const log = await replica({ clock });
  const client = lossy();
  const late = await replica({ name: 'late', clock, client });
  await propose(log, set('a', '0'));
  const from = await head(late);
  const waiting = late.watch(from, options)[Symbol.asyncIterator]().next();
  waiting.catch(() => {});
  client.isAway = true;
  for (let i = 1; i <= 10; i += 1) await propose(log, set('a', String(i)), set(`k/${i}`, 'x'));
  clock.setWall(clock.now() + 25 * 3_600_000);
  await propose(log, set('b', '1'));
  // Reads from the view, without a word of what is new.
  expect(await values(late)).toEqual(['a=0@1']);
  client.isAway = false;
  expect(await values(late)).toEqual(await values(log));
  await expect(waiting).rejects.toMatchObject({ code: 'log.closed' });
  await expect(entries(late, from, 1)).rejects.toMatchObject({ code: 'log.compacted' });
  expect(await propose(late, set('c', '1'))).toEqual(committed(13n));
});

test('what is no log of ours is refused: a newer version, a damaged entry', async () => {
  await begin();
  const log = await replica();
  await propose(log, set('a', '1'));
  await log.close();
  const put = (key: string, value: string) =>
    etcd.client().txn({ compare: [], success: [putOp(`${PREFIX}${key}`, value)], failure: [] }, options);
  await put('entry/00000000000000000001', 'ix\n[1,"1",0,"');
  await expect(replica()).rejects.toMatchObject({ code: 'log.corrupt' });
  await put('head', '[2,"x"]');
  await expect(replica()).rejects.toMatchObject({ code: 'log.newer_schema' });
});
