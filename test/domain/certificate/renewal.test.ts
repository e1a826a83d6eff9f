import { expect, test } from 'vitest';
import { judgeRenewal } from '../../../src/domain/certificate/renewal.js';

const stream = { instance: 'i1', boot: 'b1', hardware: 'h1' };

test.each([
  { name: 'nobody had a stream', held: undefined, caller: stream, verdict: 'current' },
  { name: 'an older agent has it', held: undefined, caller: undefined, verdict: 'current' },
  { name: 'the process that has it', held: stream, caller: stream, verdict: 'current' },
  { name: 'the agent was started anew', held: stream, caller: { ...stream, instance: 'i2' }, verdict: 'current' },
  { name: 'another start of the machine', held: stream, caller: { ...stream, instance: 'i2', boot: 'b2' }, verdict: 'stranger' },
  { name: 'other hardware', held: stream, caller: { ...stream, instance: 'i2', hardware: 'h2' }, verdict: 'stranger' },
  { name: 'an older agent, where ours has the stream', held: stream, caller: undefined, verdict: 'stranger' },
])('F5: who may renew: $name', ({ held, caller, verdict }) => {
  expect(judgeRenewal(held, caller)).toBe(verdict);
});
