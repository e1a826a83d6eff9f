import { expect, test } from 'vitest';
import { LogStoreSubsystem } from '../../../src/app/log/log-store-subsystem.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';

const { signal } = new AbortController();

test('the log is open from the start to the stop', async () => {
  const log = new FakeOrderedLog();
  const subsystem = new LogStoreSubsystem(log);
  await subsystem.start(signal);
  await subsystem.ready();
  await log.head({ signal });
  await subsystem.stop();
  await subsystem.stop();
  await expect(log.head({ signal })).rejects.toMatchObject({ code: 'log.closed' });
});
