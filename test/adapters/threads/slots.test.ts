import { expect, test } from 'vitest';
import { Slots } from '../../../src/adapters/threads/slots.js';

const options = { signal: new AbortController().signal };

/** Work that ends when it is told to. */
function works(slots: Slots) {
  const begun: number[] = [];
  const ends = new Map<number, () => void>();
  const begin = (number: number, call = options) =>
    slots.use(() => {
      begun.push(number);
      return new Promise<void>((resolve) => ends.set(number, resolve));
    }, call);
  const end = async (number: number) => {
    ends.get(number)?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { begun, begin, end };
}

test('I2: so many at a time, the others in the order in which they came', async () => {
  const { begun, begin, end } = works(new Slots(2));
  for (const number of [1, 2, 3, 4, 5]) void begin(number);
  await end(0);
  expect(begun).toEqual([1, 2]);
  await end(2);
  expect(begun).toEqual([1, 2, 3]);
  await end(1);
  await end(3);
  expect(begun).toEqual([1, 2, 3, 4, 5]);
});

test('who gives up while waiting is passed over, and a failure frees its place', async () => {
  const slots = new Slots(1);
  const { begun, begin, end } = works(slots);
  const first = begin(1);
  const abort = new AbortController();
  const second = begin(2, { signal: abort.signal });
  const third = slots.use(() => Promise.reject(new Error('told to')), options);
  const refused = expect(third).rejects.toThrow('told to');
  const fourth = begin(4);
  abort.abort(new Error('enough'));
  await expect(second).rejects.toThrow('enough');
  await end(1);
  await first;
  await refused;
  await end(0);
  expect(begun).toEqual([1, 4]);
  await end(4);
  await fourth;
  await expect(begin(5, { signal: AbortSignal.abort(new Error('late')) })).rejects.toThrow('late');
});
