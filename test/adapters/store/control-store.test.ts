import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SqliteControlStore } from '../../../src/adapters/store/sqlite-control-store.js';
import { controlStoreContract } from '../../contract/control-store.contract.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';

controlStoreContract('fake', async () => ({ store: new FakeControlStore(), close: async () => {} }));

controlStoreContract('sqlite', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-store-'));
  const store = new SqliteControlStore({ file: join(folder, 'control.db'), clock: new FakeClock() });
  await store.open({ signal: new AbortController().signal });
  const close = async () => {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { store, close };
});
