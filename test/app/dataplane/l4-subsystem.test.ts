import { describe, expect, test } from 'vitest';
import { revision, ZERO_REVISION } from '../../../src/domain/log/model.js';
import { id, l4Rig as setUp, WatchedDataPlane } from '../../support/l4-rig.js';
import { options, serviceDocument } from '../../support/resource-rig.js';

const { signal } = options;

describe('following the log', () => {
  test('what is there at the start, then only what changed', async () => {
    const { l4, apply, remove, dataPlane, clock } = await setUp();
    await apply(serviceDocument('a'), serviceDocument('b'));
    await l4.start(signal);
    await clock.advance(0);
    await apply(serviceDocument('b', { endpoints: [{ address: '127.0.0.1', port: 1 }] }), serviceDocument('c'));
    await apply(serviceDocument('a', {}, { tier: 'web' }));
    await remove('a');
    expect(dataPlane.deltas).toEqual([
      '+default/a/http:80 +default/b/http:80',
      '+default/b/http:80 +default/c/http:80',
      '-default/a/http',
    ]);
    expect(dataPlane.dump()).toBe(
      [
        'default/b/http 10.192.0.3:80 random drain=30000 -> 127.0.0.1:1*1',
        'default/c/http 10.192.0.4:80 random drain=30000 ->',
      ].join('\n'),
    );
    expect(l4.reconciles().runs).toBe(4);
    await l4.stop(signal);
  });

  test('ready when the view is there and applied', async () => {
    const { l4, view, clock } = await setUp({ following: false });
    let ready = false;
    await l4.start(signal);
    void l4.ready(signal).then(() => {
      ready = true;
    });
    await clock.advance(1_000);
    expect(ready).toBe(false);
    await view.start();
    await clock.advance(0);
    expect(ready).toBe(true);
    await l4.stop(signal);
  });

  test('settled when everything of the revision was applied, well or not; rejects on abort', async () => {
    const { l4, apply, dataPlane } = await setUp();
    dataPlane.occupy('10.192.0.2:80');
    await l4.start(signal);
    const abort = new AbortController();
    const never = l4.settled(revision(9n), { signal: abort.signal });
    await apply(serviceDocument('a'));
    await l4.settled(revision(1n), options);
    expect(l4.stateOf(id('a')).state).toBe('failed');
    abort.abort(new Error('enough'));
    await expect(never).rejects.toThrow('enough');
    await expect(l4.settled(ZERO_REVISION, { signal: abort.signal })).rejects.toThrow('enough');
    await l4.stop(signal);
  });
});

describe('a port that cannot be had in production', () => {
  const taken = async () => {
    const rig = await setUp();
    rig.dataPlane.occupy('10.192.0.2:80');
    await rig.l4.start(signal);
    await rig.apply(serviceDocument('a'), serviceDocument('b'));
    return rig;
  };

  test('does not move, is named with a remedy, and affects no other', async () => {
    const { l4, clock, memory } = await taken();
    expect(l4.stateOf(id('a'))).toEqual({
      state: 'failed',
      reason: 'bind: address_in_use',
      remedy: 'stop what listens there (ss -ltnp shows it), or change the service port',
      since: clock.now(),
    });
    expect([...l4.failed().keys()]).toEqual([id('a')]);
    expect(l4.stateOf(id('b'))).toEqual({ state: 'listening', port: 80 });
    expect(memory.dump()).toBe('');
    await l4.stop(signal);
  });

  test('is tried again after 1, 2, 4 … 60 s, reported once, and recovers by itself', async () => {
    const { l4, clock, dataPlane, events } = await taken();
    const since = clock.now();
    dataPlane.deltas.length = 0;
    const tries: number[] = [];
    for (let second = 1; second <= 200; second++) {
      await clock.advance(1_000);
      if (dataPlane.deltas.splice(0).length > 0) tries.push(second);
    }
    expect(tries).toEqual([1, 3, 7, 15, 31, 63, 123, 183]);
    expect(l4.failed().get(id('a'))?.since).toBe(since);
    dataPlane.vacate('10.192.0.2:80');
    await clock.advance(60_000);
    expect(l4.stateOf(id('a'))).toEqual({ state: 'listening', port: 80 });
    expect(await events()).toEqual([
      'service default/a port http: cannot listen: bind: address_in_use',
      'service default/a port http: listens on port 80 again',
    ]);
    await clock.advance(200_000);
    expect(dataPlane.deltas).toHaveLength(1);
    await l4.stop(signal);
  });

  test('a later one is tried again soon, whatever an older one has come to', async () => {
    const { l4, clock, apply, dataPlane } = await taken();
    await clock.advance(100_000);
    dataPlane.occupy('10.192.0.4:80');
    await apply(serviceDocument('c'));
    dataPlane.vacate('10.192.0.4:80');
    await clock.advance(1_000);
    expect(l4.stateOf(id('c'))).toEqual({ state: 'listening', port: 80 });
    await l4.stop(signal);
  });

  test('goes on being tried when the data plane fails in the middle', async () => {
    const { l4, clock, dataPlane } = await taken();
    dataPlane.failNextApply(new Error('a thread died'));
    await clock.advance(1_000);
    dataPlane.vacate('10.192.0.2:80');
    await clock.advance(10_000);
    expect(l4.stateOf(id('a'))).toEqual({ state: 'listening', port: 80 });
    await l4.stop(signal);
  });

  test('what is withdrawn is not tried again', async () => {
    const { l4, clock, remove, dataPlane } = await taken();
    await remove('a');
    dataPlane.deltas.length = 0;
    await clock.advance(100_000);
    expect([dataPlane.deltas, [...l4.failed()]]).toEqual([[], []]);
    await l4.stop(signal);
  });

  test('a want of descriptors is called fd-limit', async () => {
    const { l4, apply } = await setUp({ dataPlane: new WatchedDataPlane(1) });
    await l4.start(signal);
    await apply(serviceDocument('a'), serviceDocument('b'));
    expect(l4.stateOf(id('b'))).toMatchObject({
      state: 'failed',
      reason: 'fd-limit',
      remedy: expect.stringContaining('LimitNOFILE'),
    });
    await l4.stop(signal);
  });
});

describe('a data plane that throws', () => {
  test('in the middle loses nothing, is a problem while it lasts, and is not settled', async () => {
    const { l4, apply, remove, clock, dataPlane } = await setUp();
    await l4.start(signal);
    await apply(serviceDocument('a'), serviceDocument('b'));
    dataPlane.failNextApply(new Error('a thread died'));
    await apply(serviceDocument('c'));
    let settled = false;
    void l4.settled(revision(3n), options).then(() => {
      settled = true;
    });
    await remove('a');
    expect(l4.problems()).toMatchObject([{ subject: 'dataplane', reason: expect.stringContaining('a thread died') }]);
    expect(settled).toBe(false);
    await clock.advance(1_000);
    expect(
      dataPlane
        .dump()
        .split('\n')
        .map((line) => line.split(' ')[0]),
    ).toEqual([id('b'), id('c')]);
    expect([settled, l4.problems()]).toEqual([true, []]);
    await l4.stop(signal);
  });

  test('between two candidates of a port loses nothing either', async () => {
    const { l4, apply, clock, dataPlane, memory } = await setUp({ dev: true });
    dataPlane.occupy('10.192.0.2:80');
    await l4.start(signal);
    const realApply = dataPlane.apply.bind(dataPlane);
    dataPlane.apply = async (delta, callOptions) => {
      const results = await realApply(delta, callOptions);
      dataPlane.failNextApply(new Error('a thread died'));
      dataPlane.apply = realApply;
      return results;
    };
    await apply(serviceDocument('a'), serviceDocument('b'));
    expect(l4.stateOf(id('a'))).toEqual({ state: 'pending' });
    await clock.advance(1_000);
    expect([l4.stateOf(id('a')), l4.stateOf(id('b'))]).toEqual([
      { state: 'listening', port: 8080 },
      { state: 'listening', port: 80 },
    ]);
    expect(memory.dump()).toBe('default/a/http 8080');
    await l4.stop(signal);
  });
});

describe('what is told', () => {
  test('drains and pauses are events', async () => {
    const { l4, apply, dataPlane, events } = await setUp();
    await l4.start(signal);
    await apply(serviceDocument('a', { endpoints: [{ address: '127.0.0.1', port: 1 }] }));
    await apply(serviceDocument('a'));
    dataPlane.emit({ type: 'drained', id: id('a'), endpoint: '127.0.0.1:2', closed: 3 });
    dataPlane.emit({ type: 'accept_paused', detail: 'no descriptors' });
    expect(await events()).toEqual([
      'service default/a port http: endpoint 127.0.0.1:1 drained; connections cut: 0',
      'service default/a port http: endpoint 127.0.0.1:2 drained; connections cut: 3',
      'dataplane: accepting pauses: no descriptors',
    ]);
    await l4.stop(signal);
  });
});

test('another connect time-out is applied to every listener, where it stands', async () => {
  const { l4, apply, dataPlane, clock } = await setUp({ dev: true });
  dataPlane.occupy('10.192.0.2:80');
  await l4.start(signal);
  await apply(serviceDocument('a'), serviceDocument('b'));
  expect(dataPlane.connectTimeoutMs).toBe(2_000);
  dataPlane.deltas.length = 0;
  l4.setConnectTimeout(500);
  await clock.advance(0);
  expect([dataPlane.deltas, dataPlane.connectTimeoutMs]).toEqual([['+default/a/http:8080 +default/b/http:80'], 500]);
  await apply(serviceDocument('c'));
  expect([dataPlane.deltas.length, dataPlane.connectTimeoutMs]).toEqual([2, 500]);
  await l4.stop(signal);
});

describe('stop', () => {
  test('nothing is applied afterwards, no timer is left, and the data plane has ended', async () => {
    const { l4, apply, dataPlane, clock, view } = await setUp();
    dataPlane.occupy('10.192.0.2:80');
    await l4.start(signal);
    await apply(serviceDocument('a'));
    await l4.stop(signal);
    await l4.stop(signal);
    expect([dataPlane.stopped, l4.stateOf(id('a'))]).toEqual([true, { state: 'pending' }]);
    dataPlane.deltas.length = 0;
    await apply(serviceDocument('b'));
    await view.stop();
    await clock.advance(100_000);
    expect([dataPlane.deltas, clock.sleepers]).toEqual([[], 0]);
  });

  test('waits for the run that is under way, then ends the data plane', async () => {
    const { l4, apply, dataPlane } = await setUp();
    const order: string[] = [];
    const hold = Promise.withResolvers<void>();
    const realApply = dataPlane.apply.bind(dataPlane);
    dataPlane.apply = async (delta, callOptions) => {
      await hold.promise;
      order.push('applied');
      return realApply(delta, callOptions).catch(() => []);
    };
    const realStop = dataPlane.stop.bind(dataPlane);
    dataPlane.stop = async (graceMs) => {
      order.push(`stopped with ${graceMs} ms of grace`);
      await realStop(graceMs);
    };
    await l4.start(signal);
    await apply(serviceDocument('a'));
    const stopping = l4.stop(signal);
    hold.resolve();
    await stopping;
    expect(order).toEqual(['applied', 'stopped with 5000 ms of grace']);
  });

  test('is safe before a start', async () => {
    const { l4 } = await setUp();
    await l4.stop(signal);
  });
});
