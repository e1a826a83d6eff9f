import { setTimeout as realSleep } from 'node:timers/promises';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { clockContract } from '../../contract/clock.contract.js';
import { FakeClock } from '../../fakes/fake-clock.js';

clockContract('fake', () => {
  const clock = new FakeClock();
  return { clock, pass: (ms) => clock.advance(ms) };
});

clockContract('system', () => ({ clock: new SystemClock(), pass: (ms) => realSleep(ms) }));
