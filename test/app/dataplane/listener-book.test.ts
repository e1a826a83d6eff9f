import { describe, expect, test } from 'vitest';
import { ListenerBook } from '../../../src/app/dataplane/listener-book.js';
import type { L4Listener, ListenerId } from '../../../src/domain/dataplane/model.js';
import { portNumber } from '../../../src/domain/kernel/network.js';
import type { ListenResult } from '../../../src/ports/dataplane/data-plane.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { address } from '../../support/listeners.js';

const id = 'default/a/http' as ListenerId;

function listener(port: number, at = '10.192.0.2'): L4Listener {
  const number = portNumber(port);
  if (number === undefined) throw new Error(`not a port: ${port}`);
  const plain = {
    affinityMs: 0,
    idleMs: 0,
    maxConnections: 0,
    acceptProxy: false,
    sendProxy: 0,
    path: 'proxy' as const,
    refuse: false,
  } as const;
  return { id, address: address(at), port: number, protocol: 'tcp', algorithm: 'random', drainMs: 0, ...plain, endpoints: [] };
}

const listens = (port: number): ListenResult => ({ id, listening: true, port });
const failed = (detail: string): ListenResult => ({ id, listening: false, reason: 'address_in_use', detail });

describe('candidates', () => {
  test('in production there is one', () => {
    expect(new ListenerBook(false, new FakeClock()).candidates(listener(80))).toEqual([80]);
  });

  test('in dev mode the own port, the guessable one, a free one', () => {
    const book = new ListenerBook(true, new FakeClock());
    expect(book.candidates(listener(80))).toEqual([80, 8080, 0]);
    expect(book.candidates(listener(60_000))).toEqual([60_000, 0]);
  });

  test('a remembered one comes first', () => {
    const book = new ListenerBook(true, new FakeClock());
    book.remember(new Map([[id, 8081]]));
    expect(book.candidates(listener(80))).toEqual([8081, 80, 8080, 0]);
  });

  test('one that stands stays, until its service has another port; another address keeps the choice', () => {
    const book = new ListenerBook(true, new FakeClock());
    book.note(listener(80), listens(8080));
    expect(book.candidates(listener(80))).toEqual([8080]);
    expect(book.candidates(listener(80, '10.192.0.3'))).toEqual([8080, 80, 0]);
    expect(book.candidates(listener(90))).toEqual([90, 8090, 0]);
  });
});

test('a failure keeps the time of the first while its reason is the same', async () => {
  const clock = new FakeClock();
  const book = new ListenerBook(false, clock);
  const since = () => book.failed().get(id)?.since;
  const first = clock.now();
  book.note(listener(80), failed('in use'));
  await clock.advance(1_000);
  book.note(listener(80), failed('in use'));
  expect(since()).toBe(first);
  book.note(listener(80), failed('denied'));
  expect(since()).toBe(first + 1_000);
  book.note(listener(80), listens(80));
  expect([book.stateOf(id), since()]).toEqual([{ state: 'listening', port: 80 }, undefined]);
});

test('what is forgotten is pending, and what nothing listens for is still to be gone back to', () => {
  const book = new ListenerBook(true, new FakeClock());
  book.note(listener(80), listens(8080));
  book.clear();
  expect([book.stateOf(id), [...book.moved()]]).toEqual([{ state: 'pending' }, [[id, 8080]]]);
  book.forget([id]);
  expect([...book.moved()]).toEqual([]);
});
