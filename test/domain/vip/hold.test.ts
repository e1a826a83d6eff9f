import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  assigned,
  confirmed,
  dropped,
  isAlone,
  looked,
  NO_HOLD,
  prolonged,
  reconnected,
  released,
  type VipHold,
} from '../../../src/domain/vip/hold.js';
import { GAP_MS, HOLD_MS, SILENCE_MS } from '../../../src/domain/vip/model.js';

const held: VipHold = { generation: 5n, until: 125_000, heardAt: 100_000, isTrusted: true };

test('V1: VIP_ASSIGN gives it for 25 s from its receipt', () => {
  expect(assigned(NO_HOLD, 5n, 100_000)).toEqual(held);
});

test.each([
  ['the same', 5n],
  ['an older one', 4n],
  ['a negative one', -1n],
])('a generation that is not newer changes nothing: %s', (_, generation) => {
  expect(assigned(held, generation, 100_000)).toBeUndefined();
  expect(released(held, generation)).toBeUndefined();
});

test('beyond 2^53 generations are told apart', () => {
  const far = 2n ** 53n;
  const hold = { ...held, generation: far };
  expect(assigned(hold, far + 1n, 1)?.generation).toBe(far + 1n);
  expect(released(hold, far)).toBeUndefined();
});

test('V1: an answered heartbeat prolongs to 25 s from its sending, and never shortens', () => {
  expect(prolonged(held, 104_000, 106_000)).toEqual({ ...held, until: 129_000, heardAt: 106_000 });
  expect(prolonged(held, 90_000, 106_000).until).toBe(held.until);
});

test.each([
  ['it is not held', dropped(held), 106_000],
  ['the stream is a new one, where nobody has said it yet', reconnected(held), 106_000],
  ['it has run out', held, 125_000],
])('a heartbeat prolongs nothing where %s', (_, hold, now) => {
  expect(prolonged(hold, 104_000, now)).toBe(hold);
});

test.each([
  [true, 9n],
  [true, 3n],
  [false, 9n],
  [false, 3n],
])('V2: AmIVIPHolder holds whatever its generation: %s at %s', (isHolder, generation) => {
  const next = confirmed(held, { isHolder, generation }, 110_000, 111_000);
  expect([next.generation, next.until]).toEqual([generation, isHolder ? 135_000 : undefined]);
});

test('V1: what was asked counts from the question, and takes nothing away that was given for longer', () => {
  expect(confirmed(held, { isHolder: true, generation: 5n }, 90_000, 111_000).until).toBe(125_000);
  expect(confirmed(NO_HOLD, { isHolder: true, generation: 5n }, 90_000, 111_000).until).toBe(115_000);
});

test.each([
  ['V1: a gap of more than 5 s', { now: 105_001, lastLookAt: 100_000 }, 'gap'],
  ['a gap of 5 s', { now: 105_000, lastLookAt: 100_000 }, undefined],
  ['V2: 15 s without an answer', { now: 115_000, lastLookAt: 114_000 }, 'silence'],
  ['14.999 s without an answer', { now: 114_999, lastLookAt: 114_000 }, undefined],
  ['its end', { now: 125_000, lastLookAt: 124_000 }, 'expired'],
])('%s', (_, times, because) => {
  const next = looked(held, { ...times, onDisconnect: 'drop' });
  expect(next.because).toBe(because);
  expect(next.hold.until).toBe(because === undefined ? held.until : undefined);
});

test('onDisconnect keep: it is held on for 25 s at a time, and a gap still ends it', () => {
  const alone = looked(held, { now: 120_000, lastLookAt: 119_000, onDisconnect: 'keep' });
  expect(alone).toEqual({ hold: { ...held, until: 145_000 } });
  expect(isAlone(alone.hold, 120_000)).toBe(true);
  expect(looked(held, { now: 120_000, lastLookAt: 110_000, onDisconnect: 'keep' }).because).toBe('gap');
});

test('nothing is held for longer than 25 s after the newest word of the control plane', () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('assign' as const), generation: fc.bigInt(0n, 20n) }),
    fc.record({ do: fc.constant('release' as const), generation: fc.bigInt(0n, 20n) }),
    fc.record({ do: fc.constant('confirm' as const), generation: fc.bigInt(0n, 20n), isHolder: fc.boolean() }),
    fc.record({ do: fc.constant('beat' as const), late: fc.nat(12_000) }),
    fc.constant({ do: 'reconnect' as const }),
    fc.constant({ do: 'look' as const }),
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(step, fc.nat(4_000)), { maxLength: 60 }), (steps) => {
      let [now, hold, lastLookAt, lastWord] = [1_000_000, NO_HOLD, 1_000_000, 0];
      for (const [one, pause] of steps) {
        const lastHold = hold;
        now += pause;
        if (one.do === 'assign') hold = assigned(hold, one.generation, now) ?? hold;
        else if (one.do === 'release') hold = released(hold, one.generation) ?? hold;
        else if (one.do === 'confirm') hold = confirmed(hold, one, now, now);
        else if (one.do === 'beat') hold = prolonged(hold, now - one.late, now);
        else if (one.do === 'reconnect') hold = reconnected(hold);
        else {
          hold = looked(hold, { now, lastLookAt, onDisconnect: 'drop' }).hold;
          lastLookAt = now;
        }
        if (hold !== lastHold) lastWord = now;
        if (hold.until !== undefined) expect(hold.until).toBeLessThanOrEqual(lastWord + HOLD_MS);
      }
      expect(looked(hold, { now: now + GAP_MS, lastLookAt: now, onDisconnect: 'drop' }).hold.until ?? 0).toBeLessThan(
        now + HOLD_MS + SILENCE_MS,
      );
    }),
  );
});
