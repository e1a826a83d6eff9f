import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from 'vitest';
import { SqliteOrderedLog } from '../../../src/adapters/log/sqlite-ordered-log.js';
import { orderedLogContract } from '../../contract/ordered-log.contract.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';
import { logServiceRig, remoteLog } from '../../support/log-service-rig.js';

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
    const inner = new FakeOrderedLog({ clock });
    const server = await logServiceRig({ log: inner, clock, service: { reads: () => true, snapshotEveryMs: 0 } });
    const { log, close } = remoteLog(server.port, clock);
    const options = { signal: new AbortController().signal };
    // On the same connection and in order: twice there and back, and what came before has had its turn on both sides.
    clock.quiet = async () => {
      for (let time = 0; time < 3; time += 1) await log.head(options).catch(() => {});
    };
    rigs.push(close, server.stop);
    return { log, clock, close: () => inner.close() };
  },
  { buffered: true },
);
