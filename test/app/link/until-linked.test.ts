import { expect, test } from 'vitest';
import type { LinkState } from '../../../src/app/link/link-subsystem.js';
import { untilLinked } from '../../../src/app/link/until-linked.js';
import { FakeClock } from '../../fakes/fake-clock.js';

type Linked = Pick<LinkState, 'connected'>;
const none: Linked = { connected: undefined };
const connected = { since: 0, address: { host: 'a', port: 1 }, server: undefined } as NonNullable<LinkState['connected']>;

function waiting(state: () => Linked) {
  const clock = new FakeClock();
  const seen = { clock, done: false };
  void untilLinked({ state }, clock, { signal: new AbortController().signal }).then(() => {
    seen.done = true;
  });
  return seen;
}

test('F5: waits for the stream, a quarter of a second at a time', async () => {
  let state = none;
  const seen = waiting(() => state);
  await seen.clock.advance(1_000);
  expect(seen.done).toBe(false);
  state = { connected };
  await seen.clock.advance(250);
  expect(seen.done).toBe(true);
});

test('with a stream, or after 15 s without one, there is nothing to wait for', async () => {
  const linked = waiting(() => ({ connected }));
  await linked.clock.advance(0);
  expect(linked.done).toBe(true);
  const alone = waiting(() => none);
  await alone.clock.advance(14_999);
  expect(alone.done).toBe(false);
  await alone.clock.advance(1);
  expect(alone.done).toBe(true);
});
