import { describe, expect, test } from 'vitest';
import type { InstructionKey, Tag } from '../../src/domain/instruction/model.js';
import { ackedRow, finishedRow, type Row, receivedRow, startedRow, tombstoneOf } from '../../src/domain/instruction/row.js';
import type { Epoch } from '../../src/domain/link/model.js';
import type { Journal, JournalChange } from '../../src/ports/instruction/journal.js';

const options = { signal: new AbortController().signal };
const NOW = 1_000_000;

export function key(tag: string, fleet = 'fleet-a'): InstructionKey {
  return { fleet, tag: tag as Tag };
}

export function sampleRow(tag: string, facts: Partial<Row> = {}): Row {
  const row = receivedRow({
    ...key(tag),
    ...{ type: 'RUN_REMOTE_SCRIPT', digest: 'd1', payloadDigest: 'p1', who: 'server:s1@3', lanes: ['script/a', 'b'] },
    ...{ repeat: 'never', epoch: 3n as Epoch, receivedAt: NOW, expiresAt: NOW + 5, waiterMs: 25_000, boot: 'boot-1' },
    ...{ task: 'abc', background: false },
  });
  return { ...row, ...facts };
}

const put = (row: Row): JournalChange => ({ change: 'row', row });

/** Every Journal must pass. `make` gives a disk: what it returns opens another journal on it. */
export function journalContract(name: string, make: () => Promise<() => Journal>): void {
  describe(`Journal: ${name}`, () => {
    const opened = async () => {
      const again = await make();
      const journal = again();
      const { live } = await journal.open(options);
      return { journal, live, again };
    };
    const reopen = async (journal: Journal, again: () => Journal) => {
      await journal.close();
      const next = again();
      return { next, opened: await next.open(options) };
    };

    test('is empty at first, and has an id', async () => {
      const { journal, live } = await opened();
      expect(live).toEqual([]);
      expect(journal.facts()?.counter).toBe(0n);
      expect(journal.facts()?.id).not.toBe('');
      await journal.close();
      expect(journal.facts()).toBeUndefined();
    });

    test('a committed row is found, whole, also by the next process', async () => {
      const { journal, again } = await opened();
      const rows = [sampleRow('t1'), sampleRow('t2', { epoch: undefined, expiresAt: undefined, task: undefined, lanes: [] })];
      await journal.commit(rows.map(put), options);
      const expected = rows.map((row) => ({ row, hasPayload: false, hasReply: false, replyBytes: 0 }));
      expect(await journal.find([key('t2'), key('t3'), key('t1')], options)).toEqual([expected[1], undefined, expected[0]]);
      const { next, opened: after } = await reopen(journal, again);
      expect(after.live).toEqual(expected);
      await next.close();
    });

    test('A13: the same tag of another fleet is another instruction', async () => {
      const { journal } = await opened();
      await journal.commit([put(sampleRow('t1'))], options);
      expect(await journal.find([key('t1', 'fleet-b')], options)).toEqual([undefined]);
      await journal.close();
    });

    test('A9: a tombstone is kept as it is', async () => {
      const { journal, again } = await opened();
      const tombstone = tombstoneOf(finishedRow(sampleRow('t1'), 'done', NOW));
      await journal.commit([put(tombstone)], options);
      const { next } = await reopen(journal, again);
      expect((await next.find([key('t1')], options))[0]?.row).toEqual(tombstone);
      await next.close();
    });

    test('a row keeps its place when it changes', async () => {
      const { journal, again } = await opened();
      await journal.commit([put(sampleRow('t1')), put(sampleRow('t2'))], options);
      const changed = { ...startedRow(sampleRow('t1')), step: 'body 1' };
      await journal.commit([put(changed)], options);
      const { next, opened: after } = await reopen(journal, again);
      expect(after.live.map(({ row }) => row)).toEqual([changed, sampleRow('t2')]);
      await next.close();
    });

    test('payloads and replies have lives of their own; a row without a reply is a tombstone', async () => {
      const { journal, again } = await opened();
      const done = finishedRow(sampleRow('t1'), 'done', NOW);
      const reply = { type: 'NO_CONTENT', jsonB64: 'e30=' };
      await journal.commit([put(sampleRow('t1')), { change: 'payload', key: key('t1'), jsonB64: 'e30=' }], options);
      expect(await journal.payload(key('t1'), options)).toBe('e30=');
      const finish: JournalChange[] = [put(done), { change: 'payload', key: key('t1'), jsonB64: undefined }];
      await journal.commit([...finish, { change: 'reply', key: key('t1'), reply }], options);
      expect(await journal.payload(key('t1'), options)).toBeUndefined();
      expect(await journal.reply(key('t1'), options)).toEqual(reply);
      expect((await journal.find([key('t1')], options))[0]).toEqual({
        row: done,
        hasPayload: false,
        hasReply: true,
        replyBytes: 14,
      });
      await journal.commit([{ change: 'reply', key: key('t1'), reply: undefined }], options);
      expect(await journal.reply(key('t1'), options)).toBeUndefined();
      const { next, opened: after } = await reopen(journal, again);
      expect(after.live).toEqual([]);
      expect((await next.find([key('t1')], options))[0]?.row).toEqual(done);
      await next.close();
    });

    test('A18: silence is a reply', async () => {
      const { journal, again } = await opened();
      const done = finishedRow(sampleRow('t1'), 'failed', NOW);
      await journal.commit([put(done), { change: 'reply', key: key('t1'), reply: 'none' }], options);
      expect(await journal.reply(key('t1'), options)).toBe('none');
      const { next, opened: after } = await reopen(journal, again);
      expect(after.live.map(({ hasReply, replyBytes }) => [hasReply, replyBytes])).toEqual([[true, 0]]);
      await next.close();
    });

    test('A15b: a reply that was set aside stays with its row', async () => {
      const { journal } = await opened();
      const reply = { type: 'BAD', jsonB64: 'e30=' };
      const setAside: JournalChange = { change: 'set_aside', key: key('t1'), reply };
      await journal.commit([put(finishedRow(sampleRow('t1'), 'done', NOW)), setAside], options);
      expect(await journal.setAside(key('t1'), options)).toEqual(reply);
      expect(await journal.reply(key('t1'), options)).toBeUndefined();
      await journal.prune({ receivedBefore: NOW + 1, expiredBefore: NOW + 10, most: 10 }, options);
      await journal.commit([put(sampleRow('t2'))], options);
      expect(await journal.setAside(key('t1'), options)).toBeUndefined();
      expect(await journal.setAside(key('t2'), options)).toBeUndefined();
      await journal.close();
    });

    test('a removed row is gone with all that it had', async () => {
      const { journal } = await opened();
      await journal.commit([put(sampleRow('t1')), { change: 'payload', key: key('t1'), jsonB64: 'e30=' }], options);
      await journal.commit([{ change: 'remove', key: key('t1') }], options);
      expect(await journal.find([key('t1')], options)).toEqual([undefined]);
      await journal.commit([put(sampleRow('t1'))], options);
      expect(await journal.payload(key('t1'), options)).toBeUndefined();
      await journal.close();
    });

    test('A12: the counter goes up with every commit and outlives the process, as the id does', async () => {
      const { journal, again } = await opened();
      const id = journal.facts()?.id;
      await journal.commit([put(sampleRow('t1'))], options);
      const first = journal.facts()?.counter ?? 0n;
      expect(first).toBeGreaterThan(0n);
      await journal.commit([put(ackedRow(finishedRow(sampleRow('t1'), 'done', NOW), NOW))], options);
      const second = journal.facts()?.counter ?? 0n;
      expect(second).toBeGreaterThan(first);
      const { next } = await reopen(journal, again);
      expect(next.facts()).toEqual({ id, counter: second });
      await next.close();
    });

    test('B3: the highest epoch of each fleet outlives the process', async () => {
      const { journal, again } = await opened();
      await journal.commit([{ change: 'epoch', fleet: 'a', epoch: (2n ** 62n) as Epoch }], options);
      await journal.commit([{ change: 'epoch', fleet: 'b', epoch: 1n as Epoch }], options);
      const { next, opened: after } = await reopen(journal, again);
      expect(after.epochs).toEqual(
        new Map([
          ['a', 2n ** 62n],
          ['b', 1n],
        ]),
      );
      await next.close();
    });

    test('the generation of the virtual IP is that of each fleet, exact, and outlives the process', async () => {
      const { journal, again } = await opened();
      expect(await journal.vipGeneration('a', options)).toBe(0n);
      await journal.commit([{ change: 'vip', fleet: 'a', generation: 2n ** 62n + 1n }], options);
      await journal.commit([{ change: 'vip', fleet: 'b c', generation: -5n }], options);
      const { next } = await reopen(journal, again);
      expect(await next.vipGeneration('a', options)).toBe(2n ** 62n + 1n);
      await next.commit([{ change: 'vip', fleet: 'a', generation: 3n }], options);
      expect([await next.vipGeneration('a', options), await next.vipGeneration('b c', options)]).toEqual([3n, -5n]);
      await next.close();
      await expect(next.vipGeneration('a', options)).rejects.toMatchObject({ code: 'journal.unavailable' });
    });

    test('A9: old tombstones go, those that expire later and those with a reply stay', async () => {
      const { journal } = await opened();
      const done = (tag: string, facts: Partial<Row>) => put({ ...finishedRow(sampleRow(tag), 'done', NOW), ...facts });
      await journal.commit(
        [
          done('old', { receivedAt: 10, expiresAt: undefined }),
          done('later', { receivedAt: 10, expiresAt: 5_000 }),
          done('kept', { receivedAt: 10, expiresAt: undefined }),
          { change: 'reply', key: key('kept'), reply: { type: 'A', jsonB64: '' } },
          put(sampleRow('unfinished', { receivedAt: 10, expiresAt: undefined })),
          done('young', { receivedAt: 1_000, expiresAt: undefined }),
        ],
        options,
      );
      await journal.prune({ receivedBefore: 100, expiredBefore: 4_000, most: 10 }, options);
      const found = async () => {
        const tags = ['old', 'later', 'kept', 'unfinished', 'young'];
        const entries = await journal.find(
          tags.map((tag) => key(tag)),
          options,
        );
        return tags.filter((_, place) => entries[place] !== undefined);
      };
      expect(await found()).toEqual(['later', 'kept', 'unfinished', 'young']);
      await journal.prune({ receivedBefore: 0, expiredBefore: 0, most: 1 }, options);
      expect(await found()).toEqual(['kept', 'unfinished', 'young']);
      await journal.close();
    });

    test('many commits at once are all there, the last of a row stands', async () => {
      const { journal } = await opened();
      const steps = Array.from({ length: 200 }, (_, step) => step);
      await Promise.all(
        steps.map((step) => journal.commit([put(sampleRow('t1', { step: `${step}` })), put(sampleRow(`t-${step}`))], options)),
      );
      expect((await journal.find([key('t1')], options))[0]?.row.step).toBe('199');
      expect(
        await journal.find(
          steps.map((step) => key(`t-${step}`)),
          options,
        ),
      ).not.toContain(undefined);
      await journal.close();
    });

    test('before it is open and after it was closed everything is unavailable', async () => {
      const journal = (await make())();
      const unavailable = expect.objectContaining({ code: 'journal.unavailable' });
      await expect(journal.commit([put(sampleRow('t1'))], options)).rejects.toEqual(unavailable);
      await journal.open(options);
      await journal.close();
      await journal.close();
      await expect(journal.commit([put(sampleRow('t1'))], options)).rejects.toEqual(unavailable);
      await expect(journal.find([key('t1')], options)).rejects.toEqual(unavailable);
      await expect(journal.reply(key('t1'), options)).rejects.toEqual(unavailable);
    });

    test('aborted calls reject', async () => {
      const { journal } = await opened();
      const aborted = { signal: AbortSignal.abort() };
      await expect(journal.commit([put(sampleRow('t1'))], aborted)).rejects.toThrow();
      await expect(journal.find([key('t1')], aborted)).rejects.toThrow();
      expect(await journal.find([key('t1')], options)).toEqual([undefined]);
      await journal.close();
    });
  });
}
