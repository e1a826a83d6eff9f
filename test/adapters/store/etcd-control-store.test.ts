import { afterEach, test as anywhere, expect } from 'vitest';
import { EtcdControlStore } from '../../../src/adapters/store/etcd-control-store.js';
import type { StoreChange } from '../../../src/ports/store/control-store.js';
import { put } from '../../contract/control-store.contract.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { EtcdRig, hasEtcd } from '../../support/etcd-rig.js';
import { eventually } from '../../support/eventually.js';

const test = anywhere.skipIf(!hasEtcd);

const options = { signal: new AbortController().signal };
const undo: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const each of undo.splice(0).reverse()) await each();
});

async function rig(): Promise<EtcdRig> {
  const etcd = await EtcdRig.start();
  undo.push(() => etcd.stop());
  return etcd;
}

async function open(etcd: EtcdRig, prefix = '/holdfast/test/store/', clock = new FakeClock()): Promise<EtcdControlStore> {
  const store = new EtcdControlStore({ client: etcd.client(), prefix, clock });
  await store.open(options);
  undo.push(() => store.close());
  return store;
}

/** What a watch has told, as `key=value` or `-key`. */
function follow(store: EtcdControlStore) {
  const told: string[] = [];
  const text = ({ key, value }: StoreChange) => (value === undefined ? `-${key}` : `${key}=${value}`);
  const ended = (async () => {
    for await (const batch of store.watch('', options)) told.push(...batch.map(text));
  })();
  ended.catch(() => {});
  return { told, ended };
}

test('two stores on one etcd see each other, conditions hold between them, and other keys are none of theirs', async () => {
  const etcd = await rig();
  const [one, other] = [await open(etcd), await open(etcd)];
  const { told } = follow(other);
  const version = await put(one, { 'a/b': '1' });
  expect(await other.commit([{ key: 'a/b', version }], [{ key: 'a/b', value: '2' }], options)).toBeGreaterThan(version);
  expect(await one.commit([{ key: 'a/b', version }], [{ key: 'a/b', value: '3' }], options)).toBeUndefined();
  await put(await open(etcd, '/holdfast/testing/store/'), { 'a/b': 'foreign' });
  await put(one, { end: '1' });
  await eventually(() => told).toEqual(['a/b=1', 'a/b=2', 'end=1']);
});

test('a watch goes on over a restart of etcd, also when what it missed was compacted: removals are told', async () => {
  const etcd = await rig();
  const clock = new FakeClock();
  const store = await open(etcd, undefined, clock);
  await put(store, { gone: '1', kept: '1', changed: '1' });
  const { told } = follow(store);
  await eventually(() => told.length).toBe(3);
  await etcd.kill(0);
  // The watch has noticed it, and waits until the clock moves.
  await eventually(() => clock.sleepers).toBe(1);
  etcd.restart(0);
  await etcd.ready();
  await put(store, { gone: null, changed: '2', brief: '1' });
  await put(store, { brief: null, new: '1' });
  await etcd.compact();
  await clock.advance(200);
  await eventually(() => told.slice(3).sort()).toEqual(['-gone', 'changed=2', 'new=1']);
  await put(store, { end: '1' });
  await eventually(() => told.at(-1)).toBe('end=1');
});

test('also when the watch began with what the feed had not been told yet', async () => {
  const etcd = await rig();
  const clock = new FakeClock();
  const store = await open(etcd, undefined, clock);
  const other = await open(etcd);
  await etcd.kill(0);
  await eventually(() => clock.sleepers).toBe(1);
  etcd.restart(0);
  await etcd.ready();
  await put(other, { gone: '1', kept: '1', changed: '1' });
  const { told } = follow(store);
  await eventually(() => told.length).toBe(3);
  await put(other, { gone: null, changed: '2' });
  await etcd.compact();
  await clock.advance(200);
  await eventually(() => told).toContain('-gone');
  expect(told.slice(3)).toContain('changed=2');
});

test('E10: while etcd is away calls fail, a problem says so, and it ends with the first that succeeds', async () => {
  const etcd = await rig();
  const clock = new FakeClock();
  const store = await open(etcd, undefined, clock);
  await put(store, { a: '1' });
  await etcd.kill(0);
  await expect(store.get('a', options)).rejects.toMatchObject({ code: 'store.unavailable' });
  await expect(put(store, { a: '2' })).rejects.toMatchObject({ code: 'store.unavailable' });
  expect(store.problems()).toMatchObject([{ subject: 'control-store', since: clock.now() }]);
  etcd.restart(0);
  await etcd.ready();
  expect(await store.get('a', options)).toMatchObject({ value: '1' });
  expect(store.problems()).toEqual([]);
});

test('a closed store refuses, and its watches end', async () => {
  const store = await open(await rig());
  const { ended } = follow(store);
  await put(store, { a: '1' });
  await store.close();
  await expect(ended).rejects.toMatchObject({ code: 'store.unavailable' });
  await expect(store.get('a', options)).rejects.toMatchObject({ code: 'store.unavailable' });
  await expect(store.open(options)).rejects.toMatchObject({ code: 'store.unavailable' });
});

test('E3: when etcd has gone back, watches end, and those that begin again see what there is', async () => {
  const etcd = await rig();
  const clock = new FakeClock();
  const store = await open(etcd, undefined, clock);
  await put(store, { a: '1' });
  await etcd.save();
  for (let i = 0; i < 5; i += 1) await put(store, { a: `lost ${i}` });
  const { told, ended } = follow(store);
  await eventually(() => told.length).toBeGreaterThan(0);
  let end = 'goes on';
  ended.catch((error: unknown) => {
    end = String(error);
  });
  await etcd.putBack();
  await expect
    .poll(
      async () => {
        await clock.advance(200);
        return end;
      },
      { timeout: 10_000 },
    )
    .toContain('store.unavailable');
  const again = follow(store);
  await eventually(() => again.told).toEqual(['a=1']);
  await put(store, { a: '2' });
  await eventually(() => again.told).toEqual(['a=1', 'a=2']);
});
