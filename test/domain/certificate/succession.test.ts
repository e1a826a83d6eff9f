import { describe, expect, test } from 'vitest';
import { afterIssue, afterReissue, afterUse, registrationEnd } from '../../../src/domain/certificate/succession.js';
import { DAY, held, MINUTE, NOW, nodeRecord } from './support.js';

describe('F5: first use', () => {
  test('of the first certificate is written down, once', () => {
    const change = afterUse(nodeRecord(), 'aa', NOW + MINUTE);
    expect(change).toEqual({
      record: nodeRecord({ current: held('aa', { firstUsed: NOW + MINUTE }) }),
      revocations: [],
    });
    expect(afterUse(change?.record ?? nodeRecord(), 'aa', NOW + 2 * MINUTE)).toBeUndefined();
  });

  test('of the next one makes it the current one, and retires the old one in five minutes', () => {
    const record = nodeRecord({ current: held('aa', { firstUsed: NOW }), pending: held('bb') });
    expect(afterUse(record, 'bb', NOW + DAY)).toEqual({
      record: nodeRecord({ current: held('bb', { firstUsed: NOW + DAY }) }),
      revocations: [
        {
          of: 'serial',
          id: 'aa',
          from: NOW + DAY + 5 * MINUTE,
          kind: 'retired',
          reason: 'a newer certificate of this node is in use',
          until: NOW + 90 * DAY,
        },
      ],
    });
  });

  test('the issue of the next one retires nothing, however long ago it was', () => {
    const record = nodeRecord({ current: held('aa', { firstUsed: NOW }), pending: held('bb') });
    expect(afterUse(record, 'aa', NOW + 30 * DAY)).toBeUndefined();
  });

  test('of one that is neither changes nothing', () => {
    expect(afterUse(nodeRecord({ pending: held('bb') }), 'cc', NOW)).toBeUndefined();
  });
});

describe('F5: the next certificate', () => {
  test('is pending until it is used', () => {
    const record = nodeRecord({ renewals: [NOW - 2 * DAY] });
    expect(afterIssue(record, held('bb'), NOW)).toEqual({
      record: nodeRecord({ pending: held('bb'), renewals: [NOW] }),
      revocations: [],
    });
  });

  test('replaces one that was never used', () => {
    const { record, revocations } = afterIssue(nodeRecord({ pending: held('bb') }), held('cc'), NOW);
    expect(record.pending).toEqual(held('cc'));
    expect(record.current).toEqual(held('aa'));
    expect(revocations).toEqual([
      {
        of: 'serial',
        id: 'bb',
        from: NOW,
        kind: 'revoked',
        reason: 'it was replaced before it was used',
        until: NOW + 90 * DAY,
      },
    ]);
  });
});

test('F7: the first one is replaced when its key was lost with the answer', () => {
  const { record, revocations } = afterReissue(nodeRecord(), held('bb'), NOW);
  expect(record).toEqual(nodeRecord({ current: held('bb') }));
  expect(revocations).toMatchObject([{ of: 'serial', id: 'aa', from: NOW, kind: 'revoked' }]);
});

test('A13: the end of a registration holds for as long as any certificate of it', () => {
  const record = nodeRecord({ pending: held('bb', { notAfter: NOW + 120 * DAY }) });
  expect(registrationEnd(record, 'the node has registered again', NOW)).toEqual({
    of: 'registration',
    id: 'r1',
    from: NOW,
    kind: 'revoked',
    reason: 'the node has registered again',
    until: NOW + 120 * DAY,
  });
});
