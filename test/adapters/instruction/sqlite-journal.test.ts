import { join } from 'node:path';
import { SqliteJournal } from '../../../src/adapters/instruction/sqlite-journal.js';
import { journalContract } from '../../contract/journal.contract.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { tempFolder } from '../../support/temp-folder.js';

journalContract('SQLite', async () => {
  const file = join(await tempFolder(), 'data', 'journal.db');
  return () => new SqliteJournal({ file, clock: new FakeClock(), reserveBytes: 4_096 });
});
