import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SqliteOrderedLog } from '../../../src/adapters/log/sqlite-ordered-log.js';
import { orderedLogContract } from '../../contract/ordered-log.contract.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';

orderedLogContract('fake', async () => {
  const clock = new FakeClock();
  const log = new FakeOrderedLog({ clock });
  return { log, clock, close: () => log.close() };
});

orderedLogContract('sqlite', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-log-'));
  const clock = new FakeClock();
  const log = new SqliteOrderedLog({ file: join(folder, 'log.db'), clock });
  await log.open({ signal: new AbortController().signal });
  const close = async () => {
    await log.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { log, clock, close };
});
