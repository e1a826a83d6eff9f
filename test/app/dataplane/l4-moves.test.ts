import { expect, test } from 'vitest';
import { id, l4Rig } from '../../support/l4-rig.js';
import { options, serviceDocument } from '../../support/resource-rig.js';

const { signal } = options;
const byProxy = serviceDocument('a', { dataPath: 'proxy', endpoints: [{ address: '10.9.0.1', port: 1 }] });
const byKernel = serviceDocument('a', { endpoints: [{ address: '10.9.0.1', port: 1 }] });

test('a port that the kernel takes over keeps its listener for 3 s more, and its connections have no deadline', async () => {
  const { l4, apply, clock, dataPlane, moves } = await l4Rig({ kernel: true });
  await apply(byProxy);
  await l4.start(signal);
  await clock.advance(0);
  await apply(byKernel);
  await clock.advance(60_000);
  expect(dataPlane.dump()).toBe('default/a/http 10.192.0.2:80 random drain=30000 -> 10.9.0.1:1*1');
  moves.took('kernel', [id('a')], clock.monotonic());
  await clock.advance(2_999);
  expect(dataPlane.deltas).toEqual(['+default/a/http:80']);
  await clock.advance(1);
  expect(dataPlane.deltas).toEqual(['+default/a/http:80', '+default/a/http:80', '-default/a/http']);
  expect(moves.since('proxy', id('a'))).toBeUndefined();
  await l4.stop(signal);
});

test('one that comes back in that time never goes', async () => {
  const { l4, apply, clock, dataPlane, moves } = await l4Rig({ kernel: true });
  await apply(byProxy);
  await l4.start(signal);
  await clock.advance(0);
  await apply(byKernel);
  moves.took('kernel', [id('a')], clock.monotonic());
  await clock.advance(2_000);
  await apply(byProxy);
  await clock.advance(60_000);
  expect(dataPlane.deltas).toEqual(['+default/a/http:80', '+default/a/http:80']);
  expect(moves.since('proxy', id('a'))).toBe(0);
  await l4.stop(signal);
});

test('a service that is deleted while it moves goes at once; ports of the kernel are none of this', async () => {
  const { l4, apply, clock, dataPlane, remove } = await l4Rig({ kernel: true });
  await apply(byProxy, serviceDocument('b'));
  await l4.start(signal);
  await clock.advance(0);
  await apply(byKernel);
  await remove('a');
  expect(dataPlane.deltas).toEqual(['+default/a/http:80', '-default/a/http']);
  await l4.stop(signal);
});

test('the kernel is told of ports that stand here, not of those that could not be had', async () => {
  const { l4, apply, clock, dataPlane, moves } = await l4Rig({ kernel: true });
  const told: string[] = [];
  moves.join('kernel', () => told.push('told'));
  dataPlane.occupy('10.192.0.2:80');
  await l4.start(signal);
  await apply(byProxy);
  expect([told, moves.since('proxy', id('a'))]).toEqual([[], undefined]);
  dataPlane.vacate('10.192.0.2:80');
  await clock.advance(1_000);
  expect([told, moves.since('proxy', id('a'))]).toEqual([['told'], 1_000]);
  await l4.stop(signal);
});
