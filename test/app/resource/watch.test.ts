import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { logKey } from '../../../src/domain/log/model.js';
import type { ObjectChange, ResourceSelector } from '../../../src/ports/driving/resources.js';
import { applyCall, options, ref, resourceRig, serviceDocument, take } from '../../support/resource-rig.js';

const line = ({ revision, type, object }: ObjectChange) => `${revision} ${type} ${object.metadata.name}`;
const removal = (name: string) => ({ refs: [ref(name)], dryRun: false, ignoreNotFound: false });

async function watching(selector: ResourceSelector = {}) {
  const rig = await resourceRig();
  const abort = new AbortController();
  const open = () => rig.resources.watch(selector, { signal: abort.signal })[Symbol.asyncIterator]();
  return { ...rig, abort, open };
}

describe('watch', () => {
  test('what there is, then every change, in order', async () => {
    const { resources, open } = await watching();
    await resources.apply(applyCall([serviceDocument('b'), serviceDocument('a')]), options);
    const watch = open();
    expect((await take(watch, 2)).map(line)).toEqual(['1 added a', '1 added b']);
    await resources.apply(applyCall([serviceDocument('c'), serviceDocument('a', { ports: [{ port: 81 }] })]), options);
    await resources.delete(removal('b'), options);
    expect((await take(watch, 3)).map(line)).toEqual(['2 added c', '2 modified a', '3 deleted b']);
  });

  test('what changes while the snapshot is read comes after it, once', async () => {
    const { resources, open } = await watching();
    await resources.apply(applyCall([serviceDocument('a'), serviceDocument('b')]), options);
    const watch = open();
    expect((await take(watch, 1)).map(line)).toEqual(['1 added a']);
    await resources.apply(applyCall([serviceDocument('a', { ports: [{ port: 81 }] })]), options);
    await resources.delete(removal('b'), options);
    const rest = await take(watch, 3);
    expect(rest.map(line)).toEqual(['1 added b', '2 modified a', '3 deleted b']);
  });

  test('what leaves and enters the selection is deleted and added there', async () => {
    const { resources, open } = await watching({ labels: 'tier=web' });
    await resources.apply(applyCall([serviceDocument('a', {}, { tier: 'web' }), serviceDocument('b')]), options);
    const watch = open();
    await take(watch, 1);
    await resources.apply(applyCall([serviceDocument('a'), serviceDocument('b', {}, { tier: 'web' })]), options);
    expect((await take(watch, 2)).map(line)).toEqual(['2 deleted a', '2 added b']);
  });

  test('what checks have found changes the service that they are of, and no other', async () => {
    const { resources, log, open } = await watching();
    const checked = { health: { tcp: {} }, endpoints: [{ address: '10.0.0.1' }] };
    await resources.apply(applyCall([serviceDocument('a', checked), serviceDocument('b')]), options);
    const watch = open();
    await take(watch, 2);
    const key = logKey('health/default/a/10.0.0.1:80');
    const value = '{"healthy":false,"node":"n1","reason":"connection refused","since":0}';
    await log.propose({ changes: [{ key, value }], preconditions: [] }, options);
    await resources.apply(applyCall([serviceDocument('c')]), options);
    const [first, second] = await take(watch, 2);
    expect([first, second].map((change) => change && line(change))).toEqual(['2 modified a', '3 added c']);
    expect(first?.object.status?.endpoints).toMatchObject([
      { ready: true, health: { state: 'unhealthy', reason: 'connection refused', since: '1970-01-01T00:00:00.000Z' } },
    ]);
  });

  test('a new service is shown with the port that it got', async () => {
    const { resources, listeners, clock, open } = await watching();
    const watch = open();
    const next = watch.next();
    await clock.advance(0);
    listeners.hold();
    void resources.apply(applyCall([serviceDocument('a')]), options);
    await clock.advance(500);
    listeners.set('default/a/http', { state: 'listening', port: 8080 });
    listeners.release();
    expect((await next).value.object.status.ports[0].listen).toBe('10.192.0.2:8080');
  });

  test('a data plane that stands still holds a change up for a second', async () => {
    const { resources, listeners, clock, open } = await watching();
    const seen: string[] = [];
    void open()
      .next()
      .then(({ value }) => seen.push(value.object.status.ports[0].state));
    await clock.advance(0);
    listeners.hold();
    void resources.apply(applyCall([serviceDocument('a')]), options);
    await clock.advance(999);
    expect(seen).toEqual([]);
    await clock.advance(1);
    expect(seen).toEqual(['pending']);
  });

  test('abort ends it without an error, whatever it waits for, and leaves nothing behind', async () => {
    for (const started of [false, true]) {
      const { open, abort, clock, view, resources } = await watching();
      if (!started) await view.stop();
      const watch = open();
      const next = watch.next();
      await clock.advance(0);
      abort.abort();
      expect(await next).toEqual({ done: true, value: undefined });
      await view.stop();
      await clock.advance(10_000);
      expect(clock.sleepers).toBe(0);
      expect(resources).toBeDefined();
    }
  });

  test('one that is aborted before it begins is empty', async () => {
    const { open, abort } = await watching();
    abort.abort();
    expect(await open().next()).toEqual({ done: true, value: undefined });
  });

  test('a reader that does not read is told so, and nothing is kept for it', async () => {
    const { resources, log, clock, open } = await watching();
    await resources.apply(applyCall([serviceDocument('a')]), options);
    const watch = open();
    await take(watch, 1);
    const text = (name: string) =>
      `{"kind":"Service","metadata":{"labels":{},"name":"${name}","namespace":"default"},"source":"s","spec":{"ports":[],"endpoints":[]}}`;
    const changes = Array.from({ length: 50_001 }, (_, index) => ({
      key: logKey(`service/default/s${index}`),
      value: text(`s${index}`),
    }));
    await log.propose({ changes, preconditions: [] }, options);
    await clock.advance(0);
    await expect(watch.next()).rejects.toMatchObject({ code: 'log.slow' });
    expect(await watch.next()).toEqual({ done: true, value: undefined });
  });

  test('law: snapshot and changes together give what is there, however reads and writes alternate', async () => {
    const step = fc.oneof(
      fc.record({
        do: fc.constant('apply' as const),
        name: fc.constantFrom('a', 'b', 'c'),
        port: fc.integer({ min: 1, max: 3 }),
      }),
      fc.record({ do: fc.constant('delete' as const), name: fc.constantFrom('a', 'b', 'c') }),
      fc.record({ do: fc.constant('read' as const) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.array(step, { maxLength: 30 }), async (before, after) => {
        const { resources, open, abort, clock, view } = await watching();
        const seen = new Map<string, number>();
        const note = ({ type, object }: ObjectChange) => {
          const port = 'ports' in object.spec ? object.spec.ports[0]?.port : undefined;
          expect(seen.has(object.metadata.name)).toBe(type !== 'added');
          if (type === 'deleted') seen.delete(object.metadata.name);
          else seen.set(object.metadata.name, port ?? 0);
        };
        const perform = async (one: (typeof before)[number]) => {
          if (one.do === 'apply') {
            await resources.apply(applyCall([serviceDocument(one.name, { ports: [{ port: one.port }] })]), options);
          } else if (one.do === 'delete') await resources.delete({ ...removal(one.name), ignoreNotFound: true }, options);
          else await clock.advance(0);
        };
        for (const one of before) await perform(one);
        const reading = (async () => {
          for await (const change of { [Symbol.asyncIterator]: open }) {
            note(change);
            await Promise.resolve();
          }
        })();
        for (const one of after) await perform(one);
        await clock.advance(2_000);
        const { objects } = await resources.get({}, options);
        const there = objects.map(({ metadata, spec }) => [metadata.name, 'ports' in spec ? spec.ports[0]?.port : 0]);
        expect([...seen].sort()).toEqual(there);
        abort.abort();
        await reading;
        await view.stop();
      }),
      { numRuns: 50 },
    );
  });
});
