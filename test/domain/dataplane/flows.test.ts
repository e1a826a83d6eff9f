import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Flow, type FlowEnd, Flows, matchesFlow, packSelectors } from '../../../src/domain/dataplane/flows.js';
import { type IpAddress, ipAddress } from '../../../src/domain/kernel/network.js';

const address = (text: string) => ipAddress(text) as IpAddress;

const u32 = fc.integer({ min: 0, max: 0xffff_ffff });
const u16 = fc.integer({ min: 0, max: 0xffff });
const u8 = fc.integer({ min: 0, max: 0xff });

function flowOf(addresses: fc.Arbitrary<string>): fc.Arbitrary<Flow> {
  const end: fc.Arbitrary<FlowEnd> = fc.record({ address: addresses.map(address), port: u16 });
  return fc.record({
    protocol: u8,
    tcpState: u8,
    zone: u16,
    id: u32,
    mark: u32,
    status: u32,
    timeoutSeconds: u32,
    source: end,
    destination: end,
    backend: end,
    backendPeer: end,
  });
}
const flow = fc.oneof(flowOf(fc.ipV4()), flowOf(fc.ipV6()));

const one: Flow = {
  protocol: 6,
  tcpState: 3,
  zone: 0,
  id: 7,
  mark: 0x6000_0003,
  status: 0,
  timeoutSeconds: 60,
  source: { address: address('10.0.0.1'), port: 4000 },
  destination: { address: address('10.192.0.2'), port: 80 },
  backend: { address: address('10.1.0.1'), port: 8080 },
  backendPeer: { address: address('10.0.0.1'), port: 4000 },
};

test('rows hold what flows say', () => {
  fc.assert(
    fc.property(fc.array(flow, { maxLength: 20 }), (flows) => {
      expect([...Flows.of(flows)]).toEqual(flows);
    }),
  );
});

test('some of them, and more', () => {
  const flows = Flows.of([one, { ...one, id: 8 }, { ...one, id: 9 }]);
  expect([...flows.where(({ id }) => id !== 8)].map(({ id }) => id)).toEqual([7, 9]);
  expect([...flows.where(() => false).with(Flows.of([one]))]).toEqual([one]);
  expect(Flows.none.size).toBe(0);
  expect(flows.at(2).id).toBe(9);
  expect(() => flows.at(3)).toThrow(new RangeError('there is no flow 3 of 3'));
  expect(() => new Flows(new Uint8Array(95))).toThrow(new RangeError('95 bytes are no rows of 96'));
  expect(() => new Flows(new Uint8Array(96)).at(0)).toThrow(new RangeError('no address of family 0'));
});

describe('a filter', () => {
  test.each([
    ['nothing', {}, true],
    ['its family', { family: 4 }, true],
    ['another family', { family: 6 }, false],
    ['its protocol', { protocol: 6 }, true],
    ['another protocol', { protocol: 17 }, false],
    ['bits of its mark', { mark: { value: 0x4000_0000, mask: 0x4000_0000 } }, true],
    ['high bits of its mark that are not set', { mark: { value: 0x8000_0000, mask: 0x8000_0000 } }, false],
    ['another zone', { zone: 1 }, false],
    ['none of nothing', { anyOf: [] }, false],
    ['its back-end', { anyOf: [{ part: 'backend', address: address('10.1.0.1') }] }, true],
    ['its back-end, by UDP', { anyOf: [{ part: 'backend', address: address('10.1.0.1'), protocol: 17 }] }, false],
    ['its VIP at another port', { anyOf: [{ part: 'destination', address: address('10.192.0.2'), port: 81 }] }, false],
    ['its client', { anyOf: [{ part: 'source', address: address('10.0.0.1'), port: 4000, protocol: 6 }] }, true],
  ] as const)('%s', (_name, filter, wanted) => {
    expect(matchesFlow(filter, one)).toBe(wanted);
  });
});

test('selectors are packed as the native side reads them', () => {
  const packed = packSelectors([
    { part: 'backend', address: address('10.1.0.1'), protocol: 6, port: 0x1f90 },
    { part: 'source', address: address('fd00::1') },
  ]);
  expect([...packed]).toEqual([
    ...[2, 6, 0x1f, 0x90, 4, 0, 0, 0, 10, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ...[0, 0, 0, 0, 6, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
  ]);
});
