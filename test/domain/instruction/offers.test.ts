import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { OFFER_WINDOW, RESEND_BYTES, ResultOffers } from '../../../src/domain/instruction/offers.js';

const result = (id: string, facts: { bytes?: number; finishedAt?: number; waiterMs?: number } = {}) => ({
  ...{ id, bytes: 100, finishedAt: 0, waiterMs: 25_000 },
  ...facts,
});
const ids = (count: number) => Array.from({ length: count }, (_, number) => `${number}`);

function holding(count: number, acks: boolean): ResultOffers {
  const offers = new ResultOffers();
  for (const id of ids(count)) offers.add(result(id));
  offers.opened(acks, 0);
  return offers;
}

describe('C4: servers that acknowledge', () => {
  test('nothing is due without a stream', () => {
    const offers = new ResultOffers();
    offers.add(result('0'));
    expect(offers.due(0)).toEqual({ send: [], delivered: [], nextAt: undefined });
  });

  test('16 in order, then as acks come', () => {
    const offers = holding(20, true);
    expect(offers.due(0)).toEqual({ send: ids(16), delivered: [], nextAt: 30_000 });
    expect(offers.due(10).send).toEqual([]);
    for (const id of ['3', '0']) offers.remove(id);
    expect(offers.due(20).send).toEqual(['16', '17']);
    expect(offers.size).toBe(18);
  });

  test('again after 30 s, and at once on a new stream', () => {
    const offers = holding(1, true);
    offers.due(0);
    expect(offers.due(29_999).send).toEqual([]);
    expect(offers.due(30_000)).toEqual({ send: ['0'], delivered: [], nextAt: 60_000 });
    expect(offers.closed(31_000)).toBeUndefined();
    expect(offers.due(31_000).send).toEqual([]);
    offers.opened(true, 32_000);
    expect(offers.due(32_000).send).toEqual(['0']);
  });

  test('a new result goes out whatever waits, and is on its way then', () => {
    const offers = holding(16, true);
    offers.due(0);
    offers.add(result('new'));
    offers.sent('new', 5);
    expect(offers.isOut('new', 6)).toBe(true);
    expect(offers.isOut('new', 30_005)).toBe(false);
    expect(offers.due(6).send).toEqual([]);
    offers.remove('new');
    expect([offers.has('new'), offers.isOut('new', 6)]).toEqual([false, false]);
  });

  test('law: never more than the window of old ones is out, and all are offered in order', () => {
    fc.assert(
      fc.property(fc.nat(60), fc.array(fc.nat(15), { maxLength: 200 }), (count, acks) => {
        const offers = holding(count, true);
        const out: string[] = [];
        const offered: string[] = [];
        const pump = () => {
          for (const id of offers.due(0).send) {
            out.push(id);
            offered.push(id);
          }
          expect(out.length).toBeLessThanOrEqual(OFFER_WINDOW);
        };
        pump();
        for (let turn = 0; out.length > 0; turn++) {
          const [acked] = out.splice((acks[turn] ?? 0) % out.length, 1);
          offers.remove(acked ?? '');
          pump();
        }
        expect(offered).toEqual(ids(count));
      }),
    );
  });
});

describe('C3: servers that do not', () => {
  test('100 ms apart, each counts as delivered after 30 s', () => {
    const offers = holding(2, false);
    expect(offers.due(0)).toEqual({ send: ['0'], delivered: [], nextAt: 100 });
    expect(offers.due(99).send).toEqual([]);
    expect(offers.due(100)).toEqual({ send: ['1'], delivered: [], nextAt: 30_000 });
    expect(offers.due(30_000).delivered).toEqual(['0']);
    offers.remove('0');
    expect(offers.due(30_100).delivered).toEqual(['1']);
  });

  test('once more on the next stream, and no third time', () => {
    const offers = new ResultOffers();
    offers.opened(false, 0);
    offers.add(result('0'));
    offers.sent('0', 0);
    const sends = [];
    for (const now of [1_000, 2_000, 3_000]) {
      offers.closed(now);
      offers.opened(false, now);
      sends.push(offers.due(now).send);
    }
    expect(sends).toEqual([['0'], [], []]);
    expect(offers.size).toBe(1);
  });

  test.each([
    // The wait of a caller is 30 s at least, and 60 s more.
    [25_000, 89_999, true],
    [25_000, 90_000, false],
    [900_000, 959_999, true],
    [900_000, 960_000, false],
  ])('a caller that waits %i ms: after %i ms it is sent: %s', (waiterMs, now, sent) => {
    const offers = new ResultOffers();
    offers.add(result('0', { waiterMs }));
    offers.opened(false, now);
    expect(offers.due(now).send).toEqual(sent ? ['0'] : []);
  });

  test('8 MiB a stream', () => {
    const offers = new ResultOffers();
    for (const id of ids(4)) offers.add(result(id, { bytes: RESEND_BYTES / 2 }));
    offers.opened(false, 0);
    const sent = [0, 100, 200, 300].flatMap((now) => offers.due(now).send);
    expect(sent).toEqual(['0', '1']);
    offers.closed(0);
    offers.opened(false, 1_000);
    expect(offers.due(1_000).send).toEqual(['0']);
  });
});

describe('A15b: a connection that dies within 5 s of a result', () => {
  test('is a suspicion of all that was out; then each is offered alone, and the second death tells', () => {
    const offers = holding(3, true);
    expect(offers.due(0).send).toEqual(ids(3));
    expect(offers.closed(4_999)).toBeUndefined();
    offers.opened(true, 5_000);
    expect(offers.due(5_000)).toEqual({ send: ['0'], delivered: [], nextAt: 10_000 });
    expect(offers.due(5_001).send).toEqual([]);
    offers.remove('0');
    expect(offers.due(5_002)).toEqual({ send: ['1'], delivered: [], nextAt: 10_002 });
    expect(offers.closed(6_000)).toBe('1');
  });

  test('what a stream has outlived is no suspect any more', () => {
    const offers = holding(2, true);
    offers.due(0);
    offers.closed(1_000);
    offers.opened(true, 2_000);
    expect(offers.due(2_000).send).toEqual(['0']);
    expect(offers.due(7_000).send).toEqual(['1']);
    expect(offers.due(12_000).send).toEqual([]);
    expect(offers.closed(12_000)).toBeUndefined();
    offers.opened(true, 13_000);
    expect(offers.due(13_000).send).toEqual(['0', '1']);
  });

  test('nothing is told by a death with another result on its way', () => {
    const offers = holding(1, true);
    offers.due(0);
    offers.closed(1_000);
    offers.opened(true, 2_000);
    offers.due(2_000);
    offers.add(result('new'));
    offers.sent('new', 2_001);
    expect(offers.closed(2_002)).toBeUndefined();
  });

  test('nor by one later than 5 s, nor where nothing is confirmed', () => {
    const late = holding(1, true);
    late.due(0);
    expect(late.closed(5_000)).toBeUndefined();
    late.opened(true, 6_000);
    late.due(6_000);
    expect(late.closed(6_001)).toBeUndefined();
    const older = holding(1, false);
    older.due(0);
    expect([older.closed(1), older.closed(2)]).toEqual([undefined, undefined]);
  });
});
