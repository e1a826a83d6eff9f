import { expect, test } from 'vitest';
import { Handover } from '../../../src/app/agent/handover.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeDataPlane } from '../../fakes/fake-data-plane.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeSuccessor } from '../../fakes/fake-successor.js';

const inheritance = { locks: [7], sockets: [{ protocol: 'tcp' as const, fd: 8 }] };

function rig() {
  const clock = new FakeClock();
  const successors: FakeSuccessor[] = [];
  const launch = async () => {
    const successor = new FakeSuccessor();
    successors.push(successor);
    return successor;
  };
  return { clock, successors, handover: new Handover({ launch, clock, logger: new FakeLogger() }) };
}

test('one that asks is given everything, and has taken over when it serves', async () => {
  const { clock, handover, successors } = rig();
  const begun = handover.begin();
  await clock.advance(29_000);
  successors[0]?.ask();
  const successor = await begun;
  expect(successor).toBe(successors[0]);
  if (successor === undefined) return;
  const completed = handover.complete(successor, inheritance);
  await clock.advance(89_000);
  successors[0]?.serve();
  expect(await completed).toBe(true);
  expect(successors[0]).toMatchObject({ given: inheritance, killed: 0 });
  expect(clock.sleepers).toBe(0);
});

test('asked twice, one is started', async () => {
  const { clock, handover, successors } = rig();
  const begun = handover.begin();
  expect(await handover.begin()).toBeUndefined();
  await clock.advance(0);
  successors[0]?.ask();
  expect(await begun).toBe(successors[0]);
  expect(successors.length).toBe(1);
});

test.each([
  ['dies before it asks', (successor?: FakeSuccessor) => successor?.die(), 0],
  ['does not ask for 30 s', () => {}, 30_000],
])('one that %s is ended, and the next may be tried', async (_, act, ms) => {
  const { clock, handover, successors } = rig();
  const begun = handover.begin();
  await clock.advance(0);
  act(successors[0]);
  await clock.advance(ms);
  expect(await begun).toBeUndefined();
  expect(successors[0]?.killed).toBe(1);
  void handover.begin();
  await clock.advance(0);
  expect(successors.length).toBe(2);
});

test('one that cannot be started changes nothing', async () => {
  const failing = new Handover({
    launch: () => Promise.reject(new AgentError('agent.successor_failed', { problem: 'it does not start' })),
    clock: new FakeClock(),
    logger: new FakeLogger(),
  });
  expect(await failing.begin()).toBeUndefined();
});

test.each([
  ['dies', (successor: FakeSuccessor) => successor.die(), 0],
  ['does not serve for 90 s', () => {}, 90_000],
])('one that has been given everything and %s is ended before this side takes it up again', async (_, act, ms) => {
  const { clock, handover } = rig();
  const successor = new FakeSuccessor();
  const completed = handover.complete(successor, inheritance);
  act(successor);
  await clock.advance(ms);
  expect(await completed).toBe(false);
  expect(successor.killed).toBe(1);
});

test('what is left is carried to its end, and cut when the process is to stop', async () => {
  const { handover } = rig();
  const stops: unknown[] = [];
  const plane = new FakeDataPlane();
  plane.stop = async (...given: unknown[]) => void stops.push(given);
  const stop = new AbortController();
  await handover.carryOn(plane, 60_000, stop.signal);
  expect(stops).toEqual([[60_000, { handedOver: true }]]);
  stop.abort();
  expect(stops.length).toBe(1);
  await handover.carryOn(plane, 60_000, stop.signal);
  expect(stops[1]).toEqual([0, { handedOver: true }]);
});
