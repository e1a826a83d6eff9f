import { describe, expect, onTestFinished, test } from 'vitest';
import { PrefixView } from '../../../src/app/store/prefix-view.js';
import { put } from '../../contract/control-store.contract.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { settle } from '../../support/fleet-rig.js';

const options = { signal: new AbortController().signal };

function rig() {
  const store = new FakeControlStore();
  const clock = new FakeClock();
  const logger = new FakeLogger();
  const told: string[] = [];
  const view = new PrefixView({
    ...{ store, clock, logger, prefix: 'a/' },
    changed: (changes) => told.push(...changes.map(({ key, value }) => (value === undefined ? `-${key}` : `${key}=${value}`))),
  });
  onTestFinished(() => view.stop());
  return { store, clock, logger, told, view };
}

describe('PrefixView', () => {
  test('tells what is there, and what changes', async () => {
    const { store, told, view } = rig();
    await put(store, { 'a/1': 'x', 'b/1': 'y' });
    view.start();
    await view.reached(0n, options);
    expect(told).toEqual(['a/1=x']);
    const version = await put(store, { 'a/2': 'z', 'a/1': null });
    await view.reached(version, options);
    expect(told.slice(1)).toEqual(['a/2=z', '-a/1']);
  });

  test('after an outage it tells what has gone meanwhile, and whoever waited goes on', async () => {
    const { store, clock, told, view, logger } = rig();
    await put(store, { 'a/1': 'x', 'a/2': 'x' });
    view.start();
    await view.reached(0n, options);
    store.setUnavailable(true);
    await settle();
    expect(view.isCurrent).toBe(false);
    store.setUnavailable(false);
    const version = await put(store, { 'a/1': null, 'a/3': 'x' });
    await put(store, { 'a/3': null });
    const reached = view.reached(version, options);
    await clock.advance(100);
    await reached;
    expect(told.slice(2)).toEqual(['a/2=x', '-a/1']);
    expect(logger.dump('warn')).toContain('trying again');
  });

  test('tries again at growing intervals', async () => {
    const { store, clock, logger, view } = rig();
    store.setUnavailable(true);
    view.start();
    await clock.advance(100 + 200 + 400 + 800);
    expect(logger.lines).toHaveLength(5);
    await clock.advance(60_000);
    expect(logger.lines.at(-1)?.fields.retryMs).toBe(10_000);
    store.setUnavailable(false);
    await clock.advance(10_000);
    expect(view.isCurrent).toBe(true);
  });

  test('E10: whoever asks for what the store does not tell is told so after 5 s; a start waits on', async () => {
    const { store, clock, view } = rig();
    store.setUnavailable(true);
    view.start();
    const asked = expect(view.reached(0n, options)).rejects.toMatchObject({ code: 'store.unavailable' });
    const loaded = view.loaded(options);
    await clock.advance(5_000);
    await asked;
    expect(view.hasLoaded).toBe(false);
    store.setUnavailable(false);
    await clock.advance(10_000);
    await loaded;
    await view.loaded(options);
    expect(view.hasLoaded).toBe(true);
  });

  test('a wait that is given up ends', async () => {
    const { view } = rig();
    const abort = new AbortController();
    const wait = view.reached(0n, abort);
    abort.abort(new Error('enough'));
    await expect(wait).rejects.toThrow('enough');
    await expect(view.reached(0n, abort)).rejects.toThrow('enough');
  });
});
