import { describe, expect, test } from 'vitest';
import { WriteQueue } from '../../../src/adapters/link/write-queue.js';

function queue(limit = 10) {
  const written: string[] = [];
  const done: ((error?: Error) => void)[] = [];
  let full = 0;
  const write = (bytes: Buffer, finish: (error?: Error) => void) => {
    written.push(bytes.toString());
    done.push(finish);
  };
  const subject = new WriteQueue(write, limit, () => {
    full++;
  });
  const settled: string[] = [];
  const send = (text: string) => void subject.send(Buffer.from(text)).then((taken) => settled.push(`${text} ${taken}`));
  /** The transport takes what it was given. */
  const take = async (error?: Error) => {
    done.shift()?.(error);
    await Promise.resolve();
  };
  return { subject, written, settled, send, take, full: () => full };
}

describe('a write queue', () => {
  test('one at a time, in order', async () => {
    const { written, settled, send, take } = queue();
    for (const text of ['a', 'b', 'c']) send(text);
    expect(written).toEqual(['a']);
    await take();
    expect([written, settled]).toEqual([['a', 'b'], ['a true']]);
    await take();
    await take();
    send('d');
    expect(written).toEqual(['a', 'b', 'c', 'd']);
  });

  test('what gives way waits until nothing else does, in its own order', async () => {
    const { written, settled, send, take, subject } = queue(100);
    const behind = (text: string) => void subject.send(Buffer.from(text), true).then((taken) => settled.push(`${text} ${taken}`));
    behind('x');
    behind('y');
    behind('z');
    send('a');
    send('b');
    await take();
    await take();
    await take();
    expect(written).toEqual(['x', 'a', 'b', 'y']);
    subject.end();
    await Promise.resolve();
    expect(settled).toEqual(['x true', 'a true', 'b true', 'y false', 'z false']);
    expect(subject.bytes).toBe(0);
  });

  test('what a transport fails to take was not taken', async () => {
    const { written, settled, send, take } = queue();
    send('a');
    send('b');
    await take(new Error('broken'));
    expect([written, settled]).toEqual([['a', 'b'], ['a false']]);
  });

  test('I1: is full by what waits behind the one that is written', () => {
    const { subject, send, full } = queue(10);
    send('a message as large as it likes');
    send('12345');
    send('67890');
    expect([subject.bytes, full()]).toEqual([10, 0]);
    send('!');
    expect([subject.bytes, full()]).toEqual([11, 1]);
  });

  test('held messages wait', () => {
    const { subject, written, send } = queue();
    subject.hold();
    send('a');
    send('b');
    expect(written).toEqual([]);
    subject.release();
    expect(written).toEqual(['a']);
  });

  test('its end settles everything, and takes nothing more', async () => {
    const { subject, written, settled, send, take } = queue();
    send('a');
    send('b');
    subject.end();
    subject.end();
    send('c');
    await Promise.resolve();
    await take();
    expect([written, settled, subject.bytes]).toEqual([['a'], ['a false', 'b false', 'c false'], 0]);
  });
});
