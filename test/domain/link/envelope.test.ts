import { describe, expect, test } from 'vitest';
import { linkMessage, serverMessage, wireMessage, wireServerMessage } from '../../../src/domain/link/envelope.js';
import { epoch } from '../../../src/domain/link/model.js';

const wire = { type: 'GET_NODE_STATUS', tag: 't-1', jsonB64: 'e30=' };
const zeros = { epoch: 0n, expiresInMs: 0n };

describe('an envelope', () => {
  test('passes, whatever its payload is', () => {
    expect(linkMessage(wire)).toEqual(wire);
    expect(linkMessage({ ...wire, type: 'ERROR', jsonB64: 'exit status 1: läuft nicht' })).toMatchObject({ type: 'ERROR' });
    expect(linkMessage({ ...wire, jsonB64: '' })).toBeDefined();
  });

  test.each([
    { name: 'no type', more: { type: '' } },
    { name: 'a type of 129', more: { type: 'X'.repeat(129) } },
    { name: 'a type with a line end', more: { type: 'A\nB' } },
    { name: 'a type that was no UTF-8', more: { type: 'A\ufffd' } },
    { name: 'no tag', more: { tag: '' } },
    { name: 'a tag of 129', more: { tag: 'x'.repeat(129) } },
    { name: 'a tag with a NUL', more: { tag: 'a\0' } },
  ])('A10: $name is dropped', ({ more }) => {
    expect(linkMessage({ ...wire, ...more })).toBeUndefined();
    expect(serverMessage({ ...wire, ...zeros, ...more })).toBeUndefined();
  });

  test('128 printable characters are a tag', () => expect(linkMessage({ ...wire, tag: '~ '.repeat(64) })).toBeDefined());

  test.each([
    { name: 'neither was said', said: zeros, read: {} },
    { name: 'both', said: { epoch: 5n, expiresInMs: 1_000n }, read: { epoch: 5n, expiresInMs: 1_000 } },
    { name: 'a negative epoch', said: { epoch: -1n, expiresInMs: 0n }, read: {} },
    { name: 'a time that is over', said: { epoch: 0n, expiresInMs: -5n }, read: { expiresInMs: 0 } },
    { name: 'a time beyond reason', said: { epoch: 0n, expiresInMs: 2n ** 62n }, read: { expiresInMs: 365 * 24 * 3_600_000 } },
  ])('additions of the server: $name', ({ said, read }) =>
    expect(serverMessage({ ...wire, ...said })).toEqual({ ...wire, ...read }),
  );

  test.each([
    { message: wire, said: zeros },
    { message: { ...wire, epoch: epoch(9n), expiresInMs: 1_234.6 }, said: { epoch: 9n, expiresInMs: 1_235n } },
    { message: { ...wire, expiresInMs: 0 }, said: { epoch: 0n, expiresInMs: 1n } },
    { message: { ...wire, expiresInMs: -1 }, said: { epoch: 0n, expiresInMs: 1n } },
  ])('A11: what has no time left is not sent as what has no expiry: $said', ({ message, said }) =>
    expect(wireServerMessage(message)).toEqual({ ...wire, ...said }),
  );

  test('A15: text is well-formed', () =>
    expect(wireMessage({ ...wire, type: 'ERROR', jsonB64: 'a\udc00b' }).jsonB64).toBe('a\ufffdb'));
});
