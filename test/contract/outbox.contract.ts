import { describe, expect, test } from 'vitest';
import { type OutboxEntry, outboxSequence, ZERO_SEQUENCE } from '../../src/domain/outbox/model.js';
import type { Outbox } from '../../src/ports/outbox/outbox.js';

const options = { signal: new AbortController().signal };

const entry = (message: string): OutboxEntry => ({
  time: 1_700_000_000_000,
  kind: 'event',
  stream: 'agent',
  severity: 'info',
  message,
  labels: { node: 'a' },
});

/** Every Outbox must pass. `make` gives an empty one that holds at least eight records. */
export function outboxContract(name: string, make: () => Promise<Outbox>): void {
  const filled = async (...messages: readonly string[]) => {
    const outbox = await make();
    for (const message of messages) await outbox.append(entry(message), options);
    return outbox;
  };
  const messages = async (outbox: Outbox, after = 0n, limit = 100) =>
    (await outbox.read(outboxSequence(after), limit, options)).map(({ sequence, message }) => `${sequence} ${message}`);

  describe(`Outbox: ${name}`, () => {
    test('is empty at first', async () => {
      const outbox = await make();
      expect(await outbox.read(ZERO_SEQUENCE, 10, options)).toEqual([]);
      expect(outbox.stats()).toMatchObject({ depth: 0, dropped: 0n, nextSequence: 1n });
    });

    test('gives whole records back', async () => {
      const outbox = await filled('a');
      expect(await outbox.read(ZERO_SEQUENCE, 10, options)).toEqual([{ ...entry('a'), sequence: 1n }]);
    });

    test('numbers entries in the order of the calls, also when nobody waits for the answers', async () => {
      const outbox = await make();
      const numbers = await Promise.all(['a', 'b', 'c'].map((each) => outbox.append(entry(each), options)));
      expect(numbers).toEqual([1n, 2n, 3n]);
      expect(await messages(outbox)).toEqual(['1 a', '2 b', '3 c']);
    });

    test('reads batches after a number', async () => {
      const outbox = await filled('a', 'b', 'c', 'd');
      expect(await messages(outbox, 0n, 2)).toEqual(['1 a', '2 b']);
      expect(await messages(outbox, 2n, 2)).toEqual(['3 c', '4 d']);
      expect(await messages(outbox, 4n, 2)).toEqual([]);
      expect(await messages(outbox, 99n, 2)).toEqual([]);
    });

    test('what is read stays until it is confirmed', async () => {
      const outbox = await filled('a', 'b', 'c');
      await messages(outbox);
      expect(await messages(outbox)).toEqual(['1 a', '2 b', '3 c']);
      await outbox.confirm(outboxSequence(2n), options);
      expect(await messages(outbox)).toEqual(['3 c']);
      expect(outbox.stats()).toMatchObject({ depth: 1, dropped: 0n, nextSequence: 4n });
    });

    test('confirming again, or less, changes nothing', async () => {
      const outbox = await filled('a', 'b', 'c');
      for (const upTo of [2n, 2n, 1n, 0n]) await outbox.confirm(outboxSequence(upTo), options);
      expect(await messages(outbox)).toEqual(['3 c']);
    });

    test('what was never appended cannot be confirmed', async () => {
      const outbox = await filled('a');
      await expect(outbox.confirm(outboxSequence(2n), options)).rejects.toThrow(RangeError);
      expect(await messages(outbox)).toEqual(['1 a']);
    });

    test('numbers are not used again after everything left', async () => {
      const outbox = await filled('a', 'b');
      await outbox.confirm(outboxSequence(2n), options);
      expect(await outbox.append(entry('c'), options)).toBe(3n);
      expect(await messages(outbox)).toEqual(['3 c']);
    });

    test('changed resolves at once for what is there, or was', async () => {
      const outbox = await filled('a');
      await outbox.changed(ZERO_SEQUENCE, options);
      await outbox.confirm(outboxSequence(1n), options);
      await outbox.changed(ZERO_SEQUENCE, options);
    });

    test('changed wakes everyone who waited, each for its number', async () => {
      const outbox = await filled('a');
      const woken: string[] = [];
      const waits = [1n, 1n, 2n].map(async (after) => {
        await outbox.changed(outboxSequence(after), options);
        woken.push(`after ${after}`);
      });
      await outbox.append(entry('b'), options);
      await Promise.all(waits.slice(0, 2));
      expect(woken).toEqual(['after 1', 'after 1']);
      await outbox.append(entry('c'), options);
      await Promise.all(waits);
      expect(woken).toEqual(['after 1', 'after 1', 'after 2']);
    });

    test('a wait ends with the reason of its abort', async () => {
      const outbox = await make();
      const controller = new AbortController();
      const wait = outbox.changed(ZERO_SEQUENCE, { signal: controller.signal });
      const reason = new Error('enough');
      controller.abort(reason);
      await expect(wait).rejects.toBe(reason);
      await outbox.append(entry('a'), options);
    });

    test('a limit that is no number of records is refused', async () => {
      const outbox = await make();
      for (const limit of [0, -1, 1.5, Number.NaN]) {
        await expect(outbox.read(ZERO_SEQUENCE, limit, options)).rejects.toThrow(RangeError);
      }
    });

    test('a flushed outbox goes on', async () => {
      const outbox = await filled('a');
      await outbox.flush(options);
      expect(await messages(outbox)).toEqual(['1 a']);
    });

    test('aborted calls reject and append nothing', async () => {
      const outbox = await filled('a');
      const aborted = { signal: AbortSignal.abort() };
      await expect(outbox.append(entry('b'), aborted)).rejects.toThrow();
      await expect(outbox.read(ZERO_SEQUENCE, 1, aborted)).rejects.toThrow();
      await expect(outbox.confirm(outboxSequence(1n), aborted)).rejects.toThrow();
      await expect(outbox.changed(ZERO_SEQUENCE, aborted)).rejects.toThrow();
      await expect(outbox.flush(aborted)).rejects.toThrow();
      expect(await messages(outbox)).toEqual(['1 a']);
    });
  });
}
