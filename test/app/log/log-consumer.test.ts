import { describe, expect, test } from 'vitest';
import { LogConsumer } from '../../../src/app/log/log-consumer.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { type Cursor, logKey, type Revision, revision, type Snapshot } from '../../../src/domain/log/model.js';
import type { CallOptions } from '../../../src/ports/call-options.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';

const options = { signal: new AbortController().signal };
const text = (name: string) =>
  `{"kind":"Service","metadata":{"labels":{},"name":"${name}","namespace":"default"},"source":"s","spec":{"endpoints":[],"ports":[]}}`;

/** A log that can be replaced, and whose calls can be told to fail or to hang. */
class MovingLog extends FakeOrderedLog {
  readonly clock: FakeClock;
  inner: FakeOrderedLog;
  /** What the next snapshots meet; then what the next watches meet. */
  readonly snapshots: (Error | 'hang' | undefined)[] = [];
  readonly watches: (Error | undefined)[] = [];
  #endWatch: (error: Error) => void = () => {};

  constructor(clock: FakeClock) {
    super({ clock });
    this.clock = clock;
    this.inner = new FakeOrderedLog({ clock });
  }

  /** Ends the running watch. */
  end(error: Error): void {
    this.#endWatch(error);
  }

  async put(...names: readonly string[]): Promise<void> {
    const changes = names.map((name) => ({ key: logKey(`service/default/${name}`), value: text(name) }));
    await this.inner.propose({ changes, preconditions: [] }, options);
  }

  async drop(name: string): Promise<void> {
    await this.inner.propose({ changes: [{ key: logKey(`service/default/${name}`), value: null }], preconditions: [] }, options);
  }

  override async snapshot(prefix: string, { signal }: CallOptions): Promise<Snapshot> {
    const next = this.snapshots.shift();
    if (next === 'hang') {
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    }
    if (next instanceof Error) throw next;
    return this.inner.snapshot(prefix, { signal });
  }

  override async *watch(from: Cursor, { signal }: CallOptions) {
    const next = this.watches.shift();
    if (next !== undefined) throw next;
    const ended = Promise.withResolvers<never>();
    ended.promise.catch(() => {});
    this.#endWatch = ended.reject;
    const stop = new AbortController();
    const frames = this.inner.watch(from, { signal: AbortSignal.any([signal, stop.signal]) })[Symbol.asyncIterator]();
    try {
      for (let item = await Promise.race([frames.next(), ended.promise]); item.done !== true; ) {
        yield item.value;
        item = await Promise.race([frames.next(), ended.promise]);
      }
    } finally {
      stop.abort();
    }
  }
}

async function setUp({ started = true } = {}) {
  const clock = new FakeClock();
  const log = new MovingLog(clock);
  const logger = new FakeLogger();
  const consumer = new LogConsumer(log, clock, logger);
  const changes: string[] = [];
  consumer.onChange((touched) => {
    for (const { ref, after } of touched.changes) changes.push(`${after === undefined ? '-' : '+'}${ref.name}`);
  });
  if (started) await consumer.start();
  await clock.advance(0);
  const names = () => [...consumer.state.all()].map(({ resource }) => resource.metadata.name).sort();
  return { clock, log, logger, consumer, changes, names };
}

const wrong = (code: 'log.compacted' | 'log.changed' | 'log.slow') => new AgentError(code, { problem: 'told to' });

describe('following', () => {
  test('a snapshot, then every entry', async () => {
    const { clock, log, consumer, changes, names } = await setUp({ started: false });
    await log.put('a', 'b');
    await consumer.start();
    await consumer.ready(options.signal);
    expect([names(), consumer.state.revision]).toEqual([['a', 'b'], 1n]);
    await log.put('c');
    await log.drop('a');
    await clock.advance(0);
    expect([names(), consumer.state.revision]).toEqual([['b', 'c'], 3n]);
    expect(changes).toEqual(['+a', '+b', '+c', '-a']);
    await consumer.stop();
  });

  test.each(['log.compacted', 'log.changed', 'log.slow'] as const)(
    '%s: another snapshot, which removes what it lacks',
    async (code) => {
      const { clock, log, changes, names, logger, consumer } = await setUp();
      await log.put('a', 'b');
      await clock.advance(0);
      log.inner = new FakeOrderedLog({ clock });
      await log.put('b', 'c');
      changes.length = 0;
      log.end(wrong(code));
      await clock.advance(0);
      expect(names()).toEqual(['b', 'c']);
      expect(changes).toEqual(['-a', '+b', '+c']);
      expect(logger.dump()).toBe('info taking another snapshot of the log');
      await log.put('d');
      await clock.advance(0);
      expect(names()).toEqual(['b', 'c', 'd']);
      await consumer.stop();
    },
  );

  test('a cursor that never leads on is no busy loop', async () => {
    const { clock, log, logger, consumer } = await setUp({ started: false });
    for (let time = 0; time < 1_000; time++) log.watches.push(wrong('log.changed'));
    await consumer.start();
    await clock.advance(60_000);
    expect(logger.lines.length).toBeLessThan(15);
    await consumer.stop();
  });

  test('a log that fails is tried again, with a growing gap, and followed when it recovers', async () => {
    const { clock, log, logger, consumer, names } = await setUp({ started: false });
    await log.put('a');
    for (let time = 0; time < 4; time++) log.snapshots.push(new Error('no route'));
    await consumer.start();
    await clock.advance(0);
    expect(consumer.ageMs()).toBeUndefined();
    const gaps = () => logger.lines.map(({ fields }) => fields.retryMs);
    await clock.advance(1_499);
    expect([gaps(), names()]).toEqual([[100, 200, 400, 800], []]);
    await clock.advance(1);
    expect(names()).toEqual(['a']);
    await log.put('b');
    await clock.advance(0);
    log.end(new Error('connection lost'));
    await clock.advance(0);
    expect(gaps()).toEqual([100, 200, 400, 800, 100]);
    await log.put('c');
    await clock.advance(100);
    expect(names()).toEqual(['a', 'b', 'c']);
    await consumer.stop();
  });

  test('the gap is ten seconds at most', async () => {
    const { clock, log, logger, consumer } = await setUp({ started: false });
    for (let time = 0; time < 20; time++) log.snapshots.push(new Error('no route'));
    await consumer.start();
    await clock.advance(100_000);
    expect(Math.max(...logger.lines.map(({ fields }) => Number(fields.retryMs)))).toBe(10_000);
    await consumer.stop();
  });

  test('a reader that throws holds up neither the others nor the log', async () => {
    const { clock, log, logger, consumer, names } = await setUp();
    const seen: string[] = [];
    const undo = consumer.onChange(() => {
      throw new RangeError('a bug');
    });
    consumer.onChange((touched) => seen.push(...touched.changes.map(({ ref }) => ref.name)));
    await log.put('a');
    await log.put('b');
    await clock.advance(0);
    expect([names(), seen]).toEqual([
      ['a', 'b'],
      ['a', 'b'],
    ]);
    expect(logger.dump()).toBe('error a reader of the log failed\nerror a reader of the log failed');
    undo();
    await log.put('c');
    await clock.advance(0);
    expect(logger.lines).toHaveLength(2);
    await consumer.stop();
  });
});

describe('freshness', () => {
  test('entries and bookmarks say that the view is current; its age grows without them', async () => {
    const { clock, log, consumer } = await setUp();
    await log.put('a');
    await clock.advance(4_000);
    expect(consumer.ageMs()).toBe(4_000);
    await clock.advance(1_000);
    expect(consumer.ageMs()).toBe(0);
    log.snapshots.push('hang');
    log.end(wrong('log.slow'));
    await clock.advance(40_000);
    expect(consumer.ageMs()).toBe(40_000);
    await consumer.stop();
  });

  test('a bookmark of a server that is behind itself counts from there', async () => {
    class Late extends FakeOrderedLog {
      override async *watch(from: Cursor) {
        const { revision, digest } = from;
        yield { kind: 'bookmark' as const, previous: revision, revision, digest, head: revision, ageMs: 7_000 };
        await new Promise(() => {});
      }
    }
    const clock = new FakeClock();
    const consumer = new LogConsumer(new Late({ clock }), clock, new FakeLogger());
    await consumer.start();
    await clock.advance(1_000);
    expect(consumer.ageMs()).toBe(8_000);
  });
});

describe('reached', () => {
  test('resolves with the entry, also of a view that is not started yet', async () => {
    const { clock, log, consumer } = await setUp({ started: false });
    const seen: string[] = [];
    for (const number of [0n, 1n, 2n]) {
      void consumer.reached(revision(number), options).then(() => seen.push(`${number} at ${consumer.state.revision}`));
    }
    await clock.advance(0);
    expect(seen).toEqual([]);
    await consumer.start();
    await clock.advance(0);
    expect(seen).toEqual(['0 at 0']);
    await log.put('a');
    await log.put('b');
    await clock.advance(0);
    expect(seen).toEqual(['0 at 0', '1 at 1', '2 at 2']);
    await consumer.reached(2n as Revision, options);
    await consumer.stop();
  });

  test('rejects on abort, before and while it waits', async () => {
    const { consumer } = await setUp();
    const reason = new Error('enough');
    await expect(consumer.reached(revision(0n), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const abort = new AbortController();
    const waiting = consumer.reached(revision(9n), { signal: abort.signal });
    abort.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await consumer.stop();
  });
});

describe('stop', () => {
  test.each<[string, (log: MovingLog) => void]>([
    ['while it takes a snapshot', (log) => log.snapshots.push('hang')],
    ['while it waits to try again', (log) => log.snapshots.push(new Error('no route'))],
    ['while it watches', () => {}],
  ])('%s, twice, and nothing runs on', async (_, prepare) => {
    const { clock, log, consumer, logger, names } = await setUp({ started: false });
    prepare(log);
    await consumer.start();
    await clock.advance(50);
    await consumer.stop();
    await consumer.stop();
    const told = logger.lines.length;
    await log.put('late');
    await clock.advance(60_000);
    expect([names(), clock.sleepers, logger.lines.length]).toEqual([[], 0, told]);
  });

  test('before a start, and a start afterwards', async () => {
    const { clock, log, consumer, names } = await setUp({ started: false });
    await consumer.stop();
    await consumer.start();
    await clock.advance(0);
    await consumer.stop();
    await log.put('a');
    await consumer.start();
    await clock.advance(0);
    expect(names()).toEqual(['a']);
    await consumer.stop();
  });
});
