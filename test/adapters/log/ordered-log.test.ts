import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, test } from 'vitest';
import { EtcdOrderedLog } from '../../../src/adapters/log/etcd-ordered-log.js';
import { SqliteOrderedLog } from '../../../src/adapters/log/sqlite-ordered-log.js';
import { MeteredLog } from '../../../src/adapters/metrics/metered-log.js';
import type { OrderedLog } from '../../../src/ports/log/ordered-log.js';
import { type LogUnderTest, orderedLogContract } from '../../contract/ordered-log.contract.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';
import { EtcdRig, hasEtcd } from '../../support/etcd-rig.js';
import { logServiceRig, remoteLog } from '../../support/log-service-rig.js';

const noOthers = (): LogUnderTest['others'] => ({ newest: undefined });

orderedLogContract('fake', async () => {
  const clock = new FakeClock();
  const others = noOthers();
  const log = new FakeOrderedLog({ clock, others: () => others.newest });
  return { log, clock, others, close: () => log.close() };
});

orderedLogContract('metered', async () => {
  const clock = new FakeClock();
  const others = noOthers();
  const log = new MeteredLog(new FakeOrderedLog({ clock, others: () => others.newest }), clock);
  return { log, clock, others, close: () => log.close() };
});

orderedLogContract('sqlite', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-log-'));
  const clock = new FakeClock();
  const others = noOthers();
  const log = new SqliteOrderedLog({ file: join(folder, 'log.db'), clock, others: () => others.newest });
  await log.open({ signal: new AbortController().signal });
  const close = async () => {
    await log.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { log, clock, others, close };
});

/** Whatever was sent over the wire has arrived and was answered before time moves on. */
class WireClock extends FakeClock {
  quiet: () => Promise<void> = async () => {};

  override async advance(ms: number): Promise<void> {
    await this.quiet();
    await super.advance(ms);
    await this.quiet();
  }
}

const rigs: (() => void)[] = [];
afterEach(() => {
  for (const stop of rigs.splice(0)) stop();
});

orderedLogContract(
  'grpc',
  async () => {
    const clock = new WireClock();
    const others = noOthers();
    const inner = new FakeOrderedLog({ clock, others: () => others.newest });
    const server = await logServiceRig({ log: inner, clock, service: { reads: () => true, snapshotEveryMs: 0 } });
    const { log, close } = remoteLog(server.port, clock);
    const options = { signal: new AbortController().signal };
    // On the same connection and in order: twice there and back, and what came before has had its turn on both sides.
    clock.quiet = async () => {
      for (let time = 0; time < 3; time += 1) await log.head(options).catch(() => {});
    };
    rigs.push(close, server.stop);
    return { log, clock, others, close: () => inner.close() };
  },
  { buffered: true },
);

let etcd: EtcdRig;
let logs = 0;
if (hasEtcd) {
  beforeAll(async () => {
    etcd = await EtcdRig.start();
  });
  afterAll(() => etcd.stop());
  onEtcd();
} else test.skip('OrderedLog: etcd, which is not installed', () => {});

/** Replicas of one new log in etcd. */
async function replicas(count: number, clock: FakeClock) {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-log-'));
  const prefix = `/holdfast/${logs++}/log/`;
  const opened: EtcdOrderedLog[] = [];
  const client = etcd.client();
  const others = noOthers();
  for (let i = 0; i < count; i += 1) {
    const log = new EtcdOrderedLog({ client, prefix, witness: join(folder, `${i}.witness`), clock, others: () => others.newest });
    await log.open({ signal: new AbortController().signal });
    opened.push(log);
  }
  const close = async () => {
    for (const log of opened) await log.close();
    client.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { opened, others, close };
}

function onEtcd(): void {
  orderedLogContract('etcd', async () => {
    const clock = new FakeClock();
    const { opened, others, close } = await replicas(1, clock);
    return { log: one(opened), clock, others, close };
  });

  orderedLogContract('etcd beside a foreign writer and with a compaction each second', async () => {
    const clock = new FakeClock();
    const { opened, others, close } = await replicas(1, clock);
    const disturbed = etcd.disturb();
    return {
      log: one(opened),
      clock,
      others,
      close: async () => {
        await disturbed.stop();
        await close();
      },
    };
  });

  orderedLogContract(
    'etcd, proposed on one replica and read on another',
    async () => {
      const clock = new WireClock();
      const { opened, others, close } = await replicas(2, clock);
      const [written, read] = [one(opened), one(opened.slice(1))];
      const options = { signal: new AbortController().signal };
      clock.quiet = async () => {
        for (let time = 0; time < 3; time += 1) await read.head(options).catch(() => {});
      };
      const log: OrderedLog = {
        propose: (proposal, options) => written.propose(proposal, options),
        snapshot: (prefix, options) => read.snapshot(prefix, options),
        head: (options) => read.head(options),
        async *watch(from, options) {
          if (!options.signal.aborted) await read.head(options);
          yield* read.watch(from, options);
        },
      };
      return { log, clock, others, close };
    },
    { buffered: true },
  );
}

function one(opened: readonly EtcdOrderedLog[]): EtcdOrderedLog {
  const [log] = opened;
  if (log === undefined) throw new Error('no replica');
  return log;
}
