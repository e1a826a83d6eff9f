import { describe, expect, test } from 'vitest';
import { MOST_RECENT, MOST_RECENT_BYTES, RecentReads } from '../../../src/app/instruction/reads.js';
import type { Request } from '../../../src/app/instruction/request.js';
import type { Tag } from '../../../src/domain/instruction/model.js';

const request = (tag: string, digest = 'd') => ({ key: { fleet: 'f', tag: tag as Tag }, digest }) as unknown as Request;
const reply = { type: 'T', jsonB64: 'e30=' };

describe('A2: the memory of reads', () => {
  test('new, attached while it runs, answered afterwards, refused for another one', () => {
    const reads = new RecentReads();
    expect(reads.enter(request('t'))).toEqual({ kind: 'new' });
    expect(reads.enter(request('t'))).toEqual({ kind: 'attach' });
    reads.answered('f\nt', reply);
    expect(reads.enter(request('t'))).toEqual({ kind: 'answer', reply });
    expect(reads.enter(request('t', 'e'))).toEqual({ kind: 'reused' });
    reads.answered('f\nother', reply);
    expect(reads.find('f\nother')).toBeUndefined();
  });

  test('1,000 of them, the oldest that is answered goes first', () => {
    const reads = new RecentReads();
    for (let number = 0; number < MOST_RECENT; number++) reads.enter(request(`${number}`));
    reads.answered('f\n1', reply);
    reads.enter(request('new'));
    expect(['0', '1', '2', 'new'].map((tag) => reads.find(`f\n${tag}`) !== undefined)).toEqual([true, false, true, true]);
  });

  test('32 MiB of them', () => {
    const reads = new RecentReads();
    const large = { type: '', jsonB64: 'x'.repeat(MOST_RECENT_BYTES / 2) };
    for (const tag of ['a', 'b', 'c']) {
      reads.enter(request(tag));
      reads.answered(`f\n${tag}`, large);
    }
    expect(['a', 'b', 'c'].map((tag) => reads.find(`f\n${tag}`) !== undefined)).toEqual([false, true, true]);
  });
});
