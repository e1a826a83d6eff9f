import { expect, test } from 'vitest';
import { LocalLog } from '../../../src/app/log/local-log.js';
import { LogConsumer } from '../../../src/app/log/log-consumer.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';

const { signal } = new AbortController();

test('its head is the view; what changes something is told to the control plane', async () => {
  const clock = new FakeClock();
  const view = new LogConsumer(new FakeOrderedLog({ clock }), clock, new FakeLogger());
  const log = new LocalLog(view);
  await expect(log.head()).rejects.toMatchObject({ code: 'log.closed' });
  await view.start();
  await view.ready(signal);
  expect(await log.head()).toEqual(view.state.cursor);
  await view.stop();
  expect(await log.head()).toEqual(view.state.cursor);
  await expect(log.propose()).rejects.toMatchObject({ code: 'log.denied' });
  await expect(log.snapshot()).rejects.toMatchObject({ code: 'log.denied' });
  await expect(log.watch()[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'log.denied' });
});
