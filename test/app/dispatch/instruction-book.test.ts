import { expect, test } from 'vitest';
import { fleetRig, n1, n2, settle, tagOf } from '../../support/fleet-rig.js';

test('the book tells how many are open, since when, and how others have ended', async () => {
  const { registrations, connect, send, book, instructions, clock } = await fleetRig();
  registrations.register(n1);
  registrations.register(n2);
  expect(book.oldestOpen()).toBeUndefined();
  const begun = clock.now();
  await send({ tag: tagOf('a') });
  await clock.advance(5_000);
  await send({ nid: n2, tag: tagOf('b') });
  expect([book.oldestOpen(), book.tally.open()]).toEqual([begun, [{ type: 'GET_NODE_STATUS', state: 'pending', count: 2 }]]);
  const { say } = await connect();
  await settle();
  expect(book.tally.open()).toContainEqual({ type: 'GET_NODE_STATUS', state: 'delivered', count: 1 });
  await say('ERROR', 'a', 'no');
  await instructions.cancel(n2, tagOf('b'), { signal: new AbortController().signal });
  await settle();
  expect(book.oldestOpen()).toBeUndefined();
  expect(book.tally.open().every(({ count }) => count === 0)).toBe(true);
  expect(book.tally.ended()).toEqual([
    { type: 'GET_NODE_STATUS', ending: 'error', count: 1 },
    { type: 'GET_NODE_STATUS', ending: 'cancelled', count: 1 },
  ]);
});
