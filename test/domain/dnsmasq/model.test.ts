import { describe, expect, test } from 'vitest';
import { type DnsmasqMemory, isServed, type PlacedConfig, wayBack } from '../../../src/domain/dnsmasq/model.js';
import type { UnitState } from '../../../src/domain/service/model.js';

const bytes = (text: string) => new TextEncoder().encode(text);
const placed: PlacedConfig = { contents: bytes('a'), digest: 'A', mark: 'm1' };
const served = { digest: 'A', mark: 'm1', boot: 'b1', startedAt: 50n };
const memory: DnsmasqMemory = { served, unfinished: undefined };
const unit: UnitState = { isKnown: true, isActive: true, startedAt: 50n, text: 'active (running)' };

describe('A8: the restart is left out only for what was seen to be served', () => {
  test.each<
    [string, boolean, Partial<{ digest: string; boot: string; memory: DnsmasqMemory; placed: PlacedConfig; unit: UnitState }>]
  >([
    ['the same file, the unit has run since then', true, {}],
    ['the unit was restarted since then', true, { unit: { ...unit, startedAt: 51n } }],
    ['the machine was restarted since then', true, { boot: 'b2', unit: { ...unit, startedAt: 1n } }],
    ['another content is asked for', false, { digest: 'B' }],
    ['it was never seen to be served', false, { memory: { served: undefined, unfinished: undefined } }],
    ['a change of it was begun', false, { memory: { served, unfinished: { before: undefined, digest: 'B' } } }],
    ['somebody has written the file since', false, { placed: { ...placed, mark: 'm2' } }],
    ['another content stands there', false, { placed: { ...placed, digest: 'B' } }],
    ['the unit does not run', false, { unit: { ...unit, isActive: false } }],
    ['the unit had started before', false, { unit: { ...unit, startedAt: 49n } }],
  ])('%s: %s', (_, expected, given) => {
    const all = { digest: 'A', boot: 'b1', memory, placed, unit, ...given };
    expect(isServed(all.digest, all.boot, all.memory, all.placed, all.unit)).toBe(expected);
  });

  test('the file is gone: false', () => {
    expect(isServed('A', 'b1', memory, undefined, unit)).toBe(false);
  });
});

describe('the way back', () => {
  test.each<[string, DnsmasqMemory, PlacedConfig | undefined, string | undefined]>([
    ['is what stands there', memory, placed, 'a'],
    ['is no file where there is none', memory, undefined, undefined],
    [
      'is what stood there before a change that did not end',
      { served: undefined, unfinished: { before: bytes('before'), digest: 'A' } },
      placed,
      'before',
    ],
    [
      'is no file if there was none before a change that did not end',
      { served: undefined, unfinished: { before: undefined, digest: 'A' } },
      placed,
      undefined,
    ],
    [
      'is what stands there if it is not of that change',
      { served: undefined, unfinished: { before: bytes('before'), digest: 'B' } },
      placed,
      'a',
    ],
  ])('%s', (_, remembered, there, expected) => {
    const back = wayBack(remembered, there);
    expect(back === undefined ? undefined : new TextDecoder().decode(back)).toBe(expected);
  });
});
