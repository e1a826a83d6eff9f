import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { conflict, Lanes, MOST_WAITING, type Queued, SLOTS } from '../../../src/domain/instruction/lanes.js';
import type { SlotClass } from '../../../src/domain/instruction/model.js';

const item = (id: string, lanes: readonly string[] = [], slot: SlotClass = 'work', bytes = 0): Queued => ({
  id,
  lanes,
  slot,
  bytes,
});

function filled(...items: readonly Queued[]): Lanes {
  const lanes = new Lanes();
  for (const each of items) expect(lanes.add(each)).toBeUndefined();
  return lanes;
}

describe('D1: it starts when it is first in every lane', () => {
  test.each<[string, readonly Queued[], readonly string[]]>([
    ['different lanes side by side', [item('1', ['a']), item('2', ['b'])], ['1', '2']],
    ['one lane after the other', [item('1', ['a']), item('2', ['a'])], ['1']],
    ['no lane, no order', [item('1'), item('2')], ['1', '2']],
    ['a wide one waits for all, and is waited for by all', [item('1', ['a']), item('2', ['a', 'b']), item('3', ['b'])], ['1']],
    ['a family waits for its members', [item('1', ['cr/x/y']), item('2', ['cr/*']), item('3', ['cr/z/z'])], ['1']],
    ['a family and another one', [item('1', ['cr/*']), item('2', ['helm/*']), item('3', ['kubectl'])], ['1', '2', '3']],
    ['a family of a family', [item('1', ['cr/x/*']), item('2', ['cr/*'])], ['1']],
    [
      'a barrier waits for everything but reads',
      [item('1', [], 'script'), item('2', ['*'], 'urgent'), item('3', [], 'read')],
      ['1', '3'],
    ],
    ['a barrier waits for no read', [item('1', [], 'read'), item('2', ['*'], 'urgent')], ['1', '2']],
  ])('%s', (_, items, started) => {
    expect(filled(...items).start()).toEqual(started);
  });

  test('the next one starts when the first has ended', () => {
    const lanes = filled(item('1', ['a']), item('2', ['a', 'b']), item('3', ['b']));
    expect(lanes.start()).toEqual(['1']);
    expect(lanes.start()).toEqual([]);
    lanes.remove('1');
    expect(lanes.start()).toEqual(['2']);
    lanes.remove('2');
    expect(lanes.start()).toEqual(['3']);
    lanes.remove('3');
    expect([lanes.waiting, lanes.running]).toEqual([0, 0]);
  });

  test('one that is taken out of the queue holds up nobody', () => {
    const lanes = filled(item('1', ['a']), item('2', ['a', 'b']), item('3', ['b']));
    expect(lanes.start()).toEqual(['1']);
    lanes.remove('2');
    expect(lanes.start()).toEqual(['3']);
    expect(lanes.isWaiting('2')).toBe(false);
  });

  test('A7: what runs already goes before all', () => {
    const lanes = new Lanes();
    lanes.addRunning(item('0', ['a'], 'script'));
    expect(lanes.add(item('1', ['a']))).toBeUndefined();
    expect(lanes.start()).toEqual([]);
    expect([lanes.waiting, lanes.running]).toEqual([1, 1]);
    lanes.remove('0');
    expect(lanes.start()).toEqual(['1']);
  });
});

describe('D2: slots', () => {
  test.each<[SlotClass, number]>([
    ['urgent', 2],
    ['read', 4],
    ['work', 8],
    ['script', 5],
  ])('%s has %i, and takes none of another', (slot, most) => {
    const many = Array.from({ length: most + 3 }, (_, number) => item(`${number}`, [], slot));
    const lanes = filled(...many);
    expect(lanes.start()).toHaveLength(most);
    for (const other of ['urgent', 'read', 'work', 'script'] as const) {
      if (other === slot) continue;
      expect(lanes.add(item(other, [], other))).toBeUndefined();
      expect(lanes.start()).toEqual([other]);
    }
    lanes.remove('0');
    expect(lanes.start()).toEqual([`${most}`]);
  });

  test('more than the slots may run when they ran before', () => {
    const lanes = new Lanes();
    for (let number = 0; number < 7; number++) lanes.addRunning(item(`${number}`, [], 'script'));
    lanes.add(item('new', [], 'script'));
    for (let number = 0; number < 2; number++) lanes.remove(`${number}`);
    expect(lanes.start()).toEqual([]);
    lanes.remove('2');
    expect(lanes.start()).toEqual(['new']);
  });
});

describe('D3: limits', () => {
  test('64 wait in a lane, running ones do not count', () => {
    const lanes = filled(item('first', ['a']));
    lanes.start();
    for (let number = 0; number < 64; number++) expect(lanes.add(item(`${number}`, ['a', 'b']))).toBeUndefined();
    expect(lanes.add(item('over', ['a']))).toBe('QUEUE_FULL: a, 64 waiting');
    expect(lanes.add(item('over', ['b', 'c']))).toBe('QUEUE_FULL: b, 64 waiting');
    expect(lanes.add(item('other', ['c']))).toBeUndefined();
  });

  test('256 wait in all', () => {
    const lanes = filled(...Array.from({ length: MOST_WAITING }, (_, number) => item(`${number}`)));
    expect(lanes.add(item('over'))).toBe('QUEUE_FULL: all lanes, 256 waiting');
    lanes.start();
    expect(lanes.add(item('over'))).toBeUndefined();
  });

  test('32 MiB wait in all', () => {
    const lanes = filled(...Array.from({ length: 8 }, (_, number) => item(`${number}`, [], 'work', 4 * 1024 * 1024)));
    expect(lanes.add(item('over', [], 'work', 1))).toBe('QUEUE_FULL: 32 MiB of payloads, 8 waiting');
    lanes.remove('0');
    expect(lanes.add(item('over', [], 'work', 1))).toBeUndefined();
  });

  test('behind a barrier only reads are taken', () => {
    const lanes = filled(item('1'), item('2', ['*'], 'urgent'));
    lanes.start();
    expect(lanes.add(item('3'))).toBe('QUEUE_FULL: *, 1 waiting');
    expect(lanes.add(item('4', [], 'read'))).toBeUndefined();
  });
});

test('what one waits for', () => {
  const lanes = filled(item('1', ['a']), item('2', ['a']), ...Array.from({ length: 8 }, (_, number) => item(`w${number}`)));
  lanes.start();
  expect(['2', 'w7', 'nobody'].map((id) => lanes.waitsFor(id))).toEqual(['lane a', 'a free work slot', 'nothing']);
});

const lane = fc.constantFrom('a', 'b', 'c/x', 'c/y', 'c/*', '*');
const queued = fc.record({
  lanes: fc.uniqueArray(lane, { maxLength: 3 }),
  slot: fc.constantFrom<SlotClass>('urgent', 'read', 'work', 'script'),
});

test('laws: no two that conflict run side by side, none starts before an older one that it conflicts with, all end', () => {
  fc.assert(
    fc.property(fc.array(queued, { maxLength: 40 }), fc.array(fc.nat(20), { maxLength: 80 }), (specs, ends) => {
      const lanes = new Lanes();
      const items = new Map<string, Queued>();
      for (const [place, { lanes: keys, slot }] of specs.entries()) {
        // Reads have no lanes.
        const each = item(`${place}`, slot === 'read' ? [] : keys, slot);
        if (lanes.add(each) === undefined) items.set(each.id, each);
      }
      const running: Queued[] = [];
      const waiting = new Set(items.keys());
      const start = () => {
        for (const id of lanes.start()) {
          const each = items.get(id);
          if (each === undefined) throw new Error('unknown');
          waiting.delete(id);
          for (const other of running) expect(conflict(each, other)).toBe(false);
          for (const other of waiting) {
            const older = items.get(other);
            if (older !== undefined && Number(other) < Number(id)) expect(conflict(each, older)).toBe(false);
          }
          running.push(each);
        }
        for (const slot of ['urgent', 'read', 'work', 'script'] as const) {
          expect(running.filter((each) => each.slot === slot).length).toBeLessThanOrEqual(SLOTS[slot]);
        }
      };
      start();
      for (let turn = 0; running.length > 0; turn++) {
        const [ended] = running.splice((ends[turn] ?? 0) % running.length, 1);
        if (ended !== undefined) lanes.remove(ended.id);
        start();
      }
      expect(waiting.size).toBe(0);
    }),
  );
});
