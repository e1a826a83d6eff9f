import { describe, expect, test } from 'vitest';
import { type Change, type Cursor, type Entry, logId, logKey, revision, ZERO_DIGEST } from '../../../src/domain/log/model.js';
import { confirmsLog, holdBack } from '../../../src/domain/log/removal-guard.js';
import { remove, set } from './support.js';

const cursor = (number: bigint, log = 'one'): Cursor => ({ logId: logId(log), revision: revision(number), digest: ZERO_DIGEST });
const services = (count: number) => Array.from({ length: count }, (_, i) => logKey(`service/default/s${i}`));
const snapshot = (at: Cursor, count: number, changed = false) => ({
  cursor: at,
  items: [...services(count), logKey('vip/10.192.0.2')].map((key) => ({ key, value: '{}', revision: revision(1n) })),
  changed,
});

describe('J4: what is held back', () => {
  test.each<{ name: string; served: number; kept: number; at?: Cursor; changed?: boolean; held: RegExp | undefined }>([
    { name: 'nothing removed', served: 20, kept: 20, held: undefined },
    { name: 'half of them', served: 20, kept: 10, held: undefined },
    { name: 'more than half and ten', served: 20, kept: 9, held: /^it would remove 11 of 20 services$/ },
    { name: 'all of nine', served: 9, kept: 0, held: undefined },
    { name: 'all of ten', served: 10, kept: 0, held: /^it would remove 10 of 10 services$/ },
    { name: 'ten of twenty-one', served: 21, kept: 11, held: undefined },
    {
      name: 'another log, the same content',
      served: 3,
      kept: 3,
      at: cursor(5n, 'two'),
      held: /another log; it would remove 0 of 3/,
    },
    { name: 'another log, nothing served', served: 0, kept: 0, at: cursor(5n, 'two'), held: undefined },
    { name: 'the same log, behind', served: 3, kept: 3, at: cursor(4n), held: /another past than this node knows/ },
    { name: 'the server does not know the cursor', served: 3, kept: 3, changed: true, held: /another past than this node knows/ },
    { name: 'more than there was', served: 10, kept: 30, held: undefined },
  ])('$name', ({ served, kept, at = cursor(9n), changed = false, held }) => {
    const reason = holdBack({ cursor: cursor(5n), services: services(served) }, snapshot(at, kept, changed));
    if (held === undefined) expect(reason).toBeUndefined();
    else expect(reason).toMatch(held);
  });

  test('a node that never had a view takes any', () => {
    expect(holdBack({ cursor: undefined, services: [] }, snapshot(cursor(1n, 'two'), 0))).toBeUndefined();
  });
});

test('an entry about a service confirms a log; what nodes write themselves does not', () => {
  const entry = (...changes: readonly Change[]): Entry => ({
    ...{ version: 1, revision: revision(1n), time: 0, previousDigest: ZERO_DIGEST, digest: ZERO_DIGEST, requestId: undefined },
    changes,
  });
  expect(confirmsLog(entry(set('service/default/a', '{}')))).toBe(true);
  expect(confirmsLog(entry(set('vip/10.192.0.2', '{}'), remove('service/default/a')))).toBe(true);
  expect(confirmsLog(entry(set('health/default/a/10.0.0.1:80', '{}'), set('endpoints/default/here', '{}')))).toBe(false);
});
