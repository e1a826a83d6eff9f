import { expect, test } from 'vitest';
import { nid, registrationId } from '../../../src/domain/link/model.js';
import { decodePresence, encodePresence, judgeHead, nodeState, unheardState } from '../../../src/domain/link/presence.js';

test.each([
  [0, 0, 'online'],
  [30_000, 0, 'online'],
  [30_001, 0, 'offline'],
  [0, 15_000, 'online'],
  [0, 15_001, 'unknown'],
  [90_000, 15_001, 'unknown'],
  [0, 45_000, 'unknown'],
  [0, 45_001, 'offline'],
])('E12: a node silent for %i ms, its server for %i ms, is %s', (nodeMs, serverMs, expected) => {
  expect(nodeState({ nodeMs, serverMs })).toBe(expected);
});

test('one that nobody has spoken of yet is unknown, and offline when it had 30 s to come back', () => {
  expect([0, 30_000, 30_001].map(unheardState)).toEqual(['unknown', 'unknown', 'offline']);
});

const head = (sequence: bigint, digit = 'a') => ({ sequence, digest: digit.repeat(64) });
test.each([
  ['the first', undefined, head(1n), head(1n), false],
  ['a later one', head(1n), head(5n, 'b'), head(5n, 'b'), false],
  ['the same', head(5n), head(5n), head(5n), false],
  ['a lower one', head(5n), head(4n), head(5n), true],
  ['another one with the number', head(5n), head(5n, 'b'), head(5n), true],
])('H2: of audit heads the highest is kept: %s', (_, kept, said, expected, isCut) => {
  expect(judgeHead(kept, said)).toEqual({ head: expected, isCut });
});

test('a presence is read back as it was written', () => {
  const presence = {
    ...{ nid: nid('n1'), registration: registrationId('r1'), server: 's1', connected: true, since: 1, lastSeen: 2 },
    ...{ address: '[::1]:1', status: 'ready', isCp: true, version: '1', auditHead: head(2n ** 60n), problem: '' },
  };
  expect(decodePresence(encodePresence(presence))).toEqual(presence);
  const bare = { ...presence, auditHead: undefined };
  expect(decodePresence(encodePresence(bare))).toEqual(bare);
});
