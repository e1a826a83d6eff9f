import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { MeteredStore } from '../../../src/adapters/metrics/metered-store.js';
import { EtcdControlStore } from '../../../src/adapters/store/etcd-control-store.js';
import { SqliteControlStore } from '../../../src/adapters/store/sqlite-control-store.js';
import { controlStoreContract } from '../../contract/control-store.contract.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';
import { EtcdRig, hasEtcd } from '../../support/etcd-rig.js';

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

controlStoreContract('metered', async () => {
  const fake = Object.assign(new FakeControlStore(), { open: async () => {}, close: async () => {}, problems: () => [] });
  return { store: new MeteredStore(fake, new FakeClock()), close: async () => {} };
});

let etcd: EtcdRig;
let stores = 0;
if (hasEtcd) {
  beforeAll(async () => {
    etcd = await EtcdRig.start();
  });
  afterAll(() => etcd.stop());
  onEtcd();
} else test.skip('ControlStore: etcd, which is not installed', () => {});

function onEtcd(): void {
  controlStoreContract('etcd', async () => {
    const client = etcd.client();
    const store = new EtcdControlStore({ client, prefix: `/holdfast/${stores++}/store/`, clock: new FakeClock() });
    await store.open({ signal: new AbortController().signal });
    const close = async () => {
      await store.close();
      client.close();
    };
    return { store, close };
  });
}
