import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { encodeMessage } from '../../src/domain/dns/encode.js';
import { type Message, types } from '../../src/domain/dns/model.js';
import type { ZoneDelta } from '../../src/domain/dns/ready.js';
import { addressData } from '../../src/domain/dns/records.js';
import { type AddressPort, addressPort, type IpAddress } from '../../src/domain/kernel/network.js';
import type { CacheEntry, DnsResponder } from '../../src/ports/dns/dns-responder.js';
import { freeUdpPort } from '../support/dns-questions.js';

const options = { signal: new AbortController().signal };

export async function freeAddress(): Promise<AddressPort> {
  const at = addressPort(`127.0.0.1:${await freeUdpPort()}`);
  if (at === undefined) throw new Error('no address');
  return at;
}

const delta = (parts: Partial<ZoneDelta>): ZoneDelta => ({ serial: 1, remove: [], upsert: [], ...parts });
const group = (id: string, ...names: readonly string[]) => ({
  id,
  names: names.map((name) => ({ name: [name, 'zone'], answers: [] })),
});

/** An answer of somebody else, with one address. */
export function cached(name: string, parts: Partial<CacheEntry> = {}): CacheEntry {
  const labels = name.split('.');
  const message: Message = {
    ...{ id: 0, isResponse: true, opcode: 0, isAuthoritative: false, isTruncated: false, recursionDesired: true },
    ...{ recursionAvailable: true, rcode: 0, questions: [{ name: labels, type: types.A, class: 1 }] },
    answers: [{ name: labels, type: types.A, class: 1, ttl: 60, data: addressData('192.0.2.1' as IpAddress) }],
    ...{ authority: [], additional: [], edns: undefined },
  };
  return { message: encodeMessage(message), isDnssecOk: false, isCheckingDisabled: false, lifeMs: 60_000, ...parts };
}

/** Every DnsResponder must pass. `make` gives one that was not started; its `occupy` makes an address one that is taken. */
export function dnsResponderContract(
  name: string,
  make: () => { readonly responder: DnsResponder; occupy(at: AddressPort): Promise<void> },
): void {
  describe(`DnsResponder: ${name}`, () => {
    let made: ReturnType<typeof make>;
    let responder: DnsResponder;
    beforeEach(() => {
      made = make();
      responder = made.responder;
      responder.start();
    });
    afterEach(() => responder.stop());

    /** Counts follow soon. */
    const counts = () => expect.poll(() => [responder.stats().names, responder.stats().cached]);

    test('listens to what it was told last, and says how each came out', async () => {
      const [first, second] = [await freeAddress(), await freeAddress()];
      expect(responder.listen([first])).toEqual([{ at: first, listening: true }]);
      expect(responder.listen([first])).toEqual([{ at: first, listening: true }]);
      await made.occupy(second);
      expect(responder.listen([second, first])).toEqual([
        { at: second, listening: false, reason: 'address_in_use', detail: expect.stringContaining('bind') },
        { at: first, listening: true },
      ]);
      expect(responder.listen([])).toEqual([]);
    });

    test('groups come whole, are replaced whole, and go', async () => {
      await responder.apply(delta({ apexes: [], upsert: [group('a', 'x', 'y'), group('b', 'z')] }), options);
      await responder.apply(delta({ upsert: [group('a', 'x', 'y'), group('b', 'z')] }), options);
      await counts().toEqual([3, 0]);
      await responder.apply(delta({ remove: ['b', 'unknown'], upsert: [group('a', 'x')] }), options);
      await counts().toEqual([1, 0]);
    });

    test('an apply that was aborted has changed nothing', async () => {
      await expect(responder.apply(delta({ upsert: [group('a', 'x')] }), { signal: AbortSignal.abort() })).rejects.toThrow();
      await counts().toEqual([0, 0]);
    });

    test('entries are kept by question, DO and CD', async () => {
      responder.putCached([cached('a.test'), cached('A.test'), cached('b.test'), cached('a.test', { isDnssecOk: true })]);
      await counts().toEqual([0, 3]);
      responder.removeCached([cached('a.test', { isDnssecOk: true }), cached('c.test')]);
      await counts().toEqual([0, 2]);
      responder.clearCached();
      await counts().toEqual([0, 0]);
    });

    test('stops twice, and then has no threads', async () => {
      expect(responder.stats().threads).toBe(1);
      await responder.stop();
      await responder.stop();
      expect(responder.stats().threads).toBe(0);
      responder.answer(1, undefined);
    });
  });
}
