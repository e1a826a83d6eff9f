import { journalContract } from '../../contract/journal.contract.js';
import { FakeJournal, FakeJournalDisk } from '../../fakes/fake-journal.js';

journalContract('fake', async () => {
  const disk = new FakeJournalDisk();
  return () => new FakeJournal(disk);
});
