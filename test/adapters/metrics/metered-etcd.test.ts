import { test as anywhere, expect, onTestFinished } from 'vitest';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { MeteredStore } from '../../../src/adapters/metrics/metered-store.js';
import { EtcdControlStore } from '../../../src/adapters/store/etcd-control-store.js';
import { EtcdRig, hasEtcd } from '../../support/etcd-rig.js';
import { eventually } from '../../support/eventually.js';

const test = anywhere.skipIf(!hasEtcd);
const options = { signal: new AbortController().signal };

test('an etcd that is gone shows in its figures, and that it came back', { timeout: 60_000 }, async () => {
  const etcd = await EtcdRig.start();
  onTestFinished(() => etcd.stop());
  const clock = new SystemClock({ unref: true });
  const store = new MeteredStore(new EtcdControlStore({ client: etcd.client(), prefix: '/holdfast/m/store/', clock }), clock);
  onTestFinished(() => store.close());
  await store.open(options);
  const write = () => store.commit([], [{ key: 'a', value: 'v' }], options);
  const commits = () => store.figures().operations.find(({ operation }) => operation === 'commit');
  await write();
  expect(store.figures()).toMatchObject({ failingSince: undefined, failingMs: 0, answeredInMs: expect.any(Number) });
  await etcd.kill(0);
  await expect(write()).rejects.toMatchObject({ kind: 'unavailable' });
  const { failingSince, failingMs } = store.figures();
  expect(failingSince).toBeGreaterThan(Date.now() - 60_000);
  expect(failingMs).toBeGreaterThan(0);
  expect(commits()?.results).toMatchObject({ answered: 1, failed: 1 });
  etcd.restart(0);
  await eventually(() =>
    write()
      .then(() => 'written')
      .catch(() => 'not yet'),
  ).toBe('written');
  expect(store.figures().failingSince).toBeUndefined();
  expect(store.figures().failingMs).toBeGreaterThanOrEqual(failingMs);
  const { sum, counts } = commits()?.latency ?? { sum: 0, counts: [] };
  expect(sum).toBeGreaterThan(0);
  const { answered = 0, failed = 0 } = commits()?.results ?? {};
  expect(counts.reduce((total, count) => total + count, 0)).toBe(answered + failed);
});
