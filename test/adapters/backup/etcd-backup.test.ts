import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test as anywhere, describe, expect, onTestFinished } from 'vitest';
import { openArchive } from '../../../src/adapters/backup/backup-archive.js';
import { ControlStoreCopy, EtcdLogCopy } from '../../../src/adapters/backup/etcd-copies.js';
import { restoreBackup } from '../../../src/adapters/backup/restore-backup.js';
import { restoreToEtcd } from '../../../src/adapters/backup/restore-to-etcd.js';
import { StoreBackups } from '../../../src/adapters/backup/store-backups.js';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { EtcdOrderedLog } from '../../../src/adapters/log/etcd-ordered-log.js';
import { EtcdReplacement } from '../../../src/adapters/log/etcd-whole-log.js';
import { SqliteOrderedLog } from '../../../src/adapters/log/sqlite-ordered-log.js';
import { EtcdControlStore } from '../../../src/adapters/store/etcd-control-store.js';
import { SqliteControlStore } from '../../../src/adapters/store/sqlite-control-store.js';
import { type AbsolutePath, makePaths } from '../../../src/domain/kernel/paths.js';
import { type Change, ZERO_DIGEST, ZERO_REVISION } from '../../../src/domain/log/model.js';
import type { Clock } from '../../../src/ports/clock.js';
import type { OwnedLog } from '../../../src/ports/log/ordered-log.js';
import type { OwnedControlStore } from '../../../src/ports/store/control-store.js';
import { EtcdRig, hasEtcd } from '../../support/etcd-rig.js';
import { drop, options, put } from '../../support/remote-rig.js';
import { tempFolder } from '../../support/temp-folder.js';

const test = anywhere.skipIf(!hasEtcd);
const clock = new SystemClock({ unref: true });
/** Nobody has to wait for the signs of life of servers. */
const hasty = (meanwhile = async () => {}): Clock => ({
  now: () => clock.now(),
  monotonic: () => clock.monotonic(),
  sleep: meanwhile,
});
const KEY = `k-1 ${'A'.repeat(43)}=\n`;
const PREFIX = '/holdfast/test/';

async function pathsOf(dataDir?: string) {
  return makePaths({ root: '/' as AbsolutePath, dataDir: (dataDir ?? (await tempFolder())) as AbsolutePath });
}

/** A control plane on stores that are open, with what a test does to it. */
async function opened<Log extends OwnedLog, Store extends OwnedControlStore>(log: Log, store: Store) {
  const close = async () => {
    await log.close();
    await store.close();
  };
  onTestFinished(close);
  await log.open(options);
  await store.open(options);
  const propose = (...changes: readonly Change[]) => log.propose({ changes, preconditions: [] }, options);
  const commit = (key: string, value: string) => store.commit([], [{ key, value }], options);
  return { log, store, propose, commit, close };
}

async function embedded(dataDir?: string) {
  const paths = await pathsOf(dataDir);
  const log = new SqliteOrderedLog({ file: paths.logDb, clock });
  const plane = await opened(log, new SqliteControlStore({ file: paths.controlDb, clock }));
  const { log: from, store } = plane;
  const parts = { sealingKey: paths.sealingKey, folder: paths.backup, version: '1.2.3', clock };
  return { ...plane, paths, backups: new StoreBackups({ ...parts, log: from, store }) };
}

async function onEtcd(etcd: EtcdRig, dataDir?: string) {
  const paths = await pathsOf(dataDir);
  const client = etcd.client();
  const log = new EtcdOrderedLog({ client, prefix: `${PREFIX}log/`, witness: paths.etcdWitness, clock });
  const plane = await opened(log, new EtcdControlStore({ client, prefix: `${PREFIX}store/`, clock }));
  const copies = { log: new EtcdLogCopy(client, `${PREFIX}log/`), store: new ControlStoreCopy(plane.store, clock) };
  const parts = { sealingKey: paths.sealingKey, folder: paths.backup, version: '1.2.3', clock };
  return { ...plane, paths, backups: new StoreBackups({ ...parts, ...copies }) };
}

async function rig(): Promise<EtcdRig> {
  const etcd = await EtcdRig.start();
  onTestFinished(() => etcd.stop());
  return etcd;
}

async function archived({ backups, paths }: Pick<Awaited<ReturnType<typeof embedded>>, 'backups' | 'paths'>): Promise<string> {
  await writeFile(paths.sealingKey, KEY, { mode: 0o600 });
  const file = join(await tempFolder(), 'backup.tar');
  const pieces: Uint8Array[] = [];
  for await (const piece of backups.take({ withKey: true }, options)) pieces.push(piece);
  await writeFile(file, Buffer.concat(pieces));
  return file;
}

interface Given {
  readonly force?: boolean;
  readonly dataDir?: string;
  readonly at?: Clock;
  readonly signal?: AbortSignal;
  readonly settle?: Parameters<typeof restoreToEtcd<string>>[0]['settle'];
}

async function restored(etcd: EtcdRig, file: string, given: Given = {}) {
  const { force = false, at = hasty(), settle = async () => 'settled', signal = options.signal } = given;
  const paths = await pathsOf(given.dataDir);
  const archive = await openArchive(file, options);
  onTestFinished(() => archive.close());
  const place = { client: etcd.client(), prefix: PREFIX };
  return { paths, ...(await restoreToEtcd({ archive, paths, clock: at, settle, place, force, version: '1.2.3' }, { signal })) };
}

const rows = async (store: OwnedControlStore) => (await store.list('', options)).map(({ key, value }) => `${key}=${value}`);
const services = async (log: OwnedLog) => (await log.snapshot('service/', options)).items;

describe('from a store of its own to etcd', () => {
  test('everything is there: values, entries, state and key; the log has a new id', async () => {
    const plane = await embedded();
    await plane.propose(put('a'), put('b'));
    await plane.propose(drop('b'));
    // More than one transaction of etcd takes.
    await plane.propose(...Array.from({ length: 300 }, (_, index) => put(`many-${index}`)));
    await plane.commit('n/1', 'one');
    await plane.commit('seal/check', 'sealed');
    for (let index = 0; index < 150; index += 1) await plane.commit(`n/${index}`, `value ${index}`);
    const file = await archived(plane);
    const [before, wanted] = [await plane.log.head(options), await services(plane.log)];

    const etcd = await rig();
    const result = await restored(etcd, file);
    expect(result).toMatchObject({ revision: before.revision, settled: 'settled', aside: [] });
    expect(result.logId).not.toBe(before.logId);
    const again = await onEtcd(etcd, result.paths.dataDir);
    expect(await again.log.head(options)).toEqual({ ...before, logId: result.logId });
    expect(await services(again.log)).toEqual(wanted);
    expect(await rows(again.store)).toEqual(await rows(plane.store));
    expect(await readFile(result.paths.sealingKey, 'utf8')).toBe(KEY);
    expect((await readdir(result.paths.dataDir)).filter((name) => /restoring|from-backup/.test(name))).toEqual([]);
    // Entries are kept: a reader goes on from the first.
    const seen: bigint[] = [];
    const first = { logId: result.logId, revision: ZERO_REVISION, digest: ZERO_DIGEST };
    for await (const frame of again.log.watch(first, options)) {
      if (frame.kind !== 'entry') continue;
      seen.push(frame.entry.revision);
      if (frame.entry.revision === before.revision) break;
    }
    expect(seen).toEqual([1n, 2n, 3n]);
    expect(await again.propose(put('after'))).toMatchObject({ revision: before.revision + 1n });
  }, 60_000);

  test('F4: what it replaces is asked first, unless only a part of it is there', async () => {
    const etcd = await rig();
    const newer = await onEtcd(etcd);
    await newer.propose(put('newer'));
    await newer.commit('enrol/revoked/serial/a1', 'revoked');
    const plane = await embedded();
    await fill(plane);
    const file = await archived(plane);
    const asked: (readonly string[] | string | undefined)[] = [];
    const settle: NonNullable<Given['settle']> = async (_store, _keyFile, former) => {
      const found = former?.list('enrol/revoked/', options).then((all) => all.map(({ key }) => key));
      asked.push(await found?.catch((error: Error) => error.message));
      return 'settled';
    };
    await restored(etcd, file, { settle, force: true });
    await restored(await rig(), file, { settle });
    await restored(await cutOff(file), file, { settle });
    const partly = expect.stringContaining('a restore into this etcd was cut off');
    expect(asked).toEqual([['enrol/revoked/serial/a1'], undefined, partly]);
  }, 60_000);

  test('what is in etcd is refused by name; forced, it is replaced, and kept as an archive', async () => {
    const etcd = await rig();
    const newer = await onEtcd(etcd);
    await newer.propose(put('newer'));
    await newer.propose(put('newest'));
    await newer.commit('n/newer', '1');
    const { logId } = await newer.log.head(options);
    const plane = await embedded();
    await plane.propose(put('older'));
    const file = await archived(plane);
    await expect(restored(etcd, file)).rejects.toMatchObject({
      code: 'backup.store_not_empty',
      message: expect.stringContaining(`etcd holds log ${logId} up to revision 2 under ${PREFIX}; the archive holds log`),
    });
    expect((await services(newer.log)).map(({ key }) => key)).toHaveLength(2);
    await newer.close();

    const { paths, aside } = await restored(etcd, file, { force: true });
    const again = await onEtcd(etcd, paths.dataDir);
    expect((await services(again.log)).map(({ key }) => key)).toEqual([put('older').key]);
    expect(await again.store.get('n/newer', options)).toBeUndefined();
    const [former = ''] = aside;
    expect(former).toMatch(/\/replaced-\d{8}T\d{6}Z\.tar$/);
    const archive = await openArchive(former, options);
    onTestFinished(() => archive.close());
    expect(archive.manifest).toMatchObject({ logId, revision: 2n });
  }, 60_000);

  test('not while a server says that it lives', async () => {
    const etcd = await rig();
    const running = await onEtcd(etcd);
    await running.propose(put('a'));
    await running.commit('presence/server/one-1', 'alive');
    await running.commit('presence/server/gone-2', 'was alive');
    const file = await archived(await embedded());
    const at = hasty(async () => void (await running.commit('presence/server/one-1', 'alive')));
    await expect(restored(etcd, file, { force: true, at })).rejects.toMatchObject({
      code: 'backup.servers_running',
      message: expect.stringMatching(/: one-1 serves from there/),
    });
    expect(await services(running.log)).toHaveLength(1);
  }, 60_000);

  test('nothing is touched when the store does not settle', async () => {
    const etcd = await rig();
    const file = await archived(await embedded());
    const settle = () => Promise.reject(new Error('told to fail'));
    await expect(restored(etcd, file, { settle })).rejects.toThrow('told to fail');
    await expect(restored(etcd, file)).resolves.toMatchObject({ settled: 'settled' });
  }, 60_000);

  test('one that was cut off serves nobody, and is finished by another; two at once do not mix', async () => {
    const plane = await embedded();
    await fill(plane);
    const file = await archived(plane);
    const wanted = await services(plane.log);
    const etcd = await rig();
    const both = await Promise.allSettled([restored(etcd, file), restored(etcd, file)]);
    const failed = both.flatMap((each) => (each.status === 'rejected' ? [each.reason.code] : []));
    // One that comes when the other is through finds a control plane there.
    expect(failed).toEqual([expect.stringMatching(/^backup\.(?:overtaken|store_not_empty)$/)]);
    expect(await services((await onEtcd(etcd)).log)).toEqual(wanted);

    const other = await cutOff(file);
    await expect(onEtcd(other)).rejects.toMatchObject({
      code: 'log.corrupt',
      message: expect.stringContaining('put back from a backup, and not to its end'),
    });
    await restored(other, file);
    expect(await services((await onEtcd(other)).log)).toEqual(wanted);
  }, 60_000);
});

/** What takes etcd a while to be put into. */
async function fill(plane: Awaited<ReturnType<typeof embedded>>): Promise<void> {
  for (let index = 0; index < 40; index += 1)
    await plane.propose(...Array.from({ length: 90 }, (_, n) => put(`s-${index}-${n}`)));
}

/** An etcd into which the archive was put in part. A fast machine may be through before it is cut off: then another one. */
async function cutOff(file: string): Promise<EtcdRig> {
  for (;;) {
    const etcd = await rig();
    const client = etcd.client();
    const cut = new AbortController();
    const ended = restored(etcd, file, { signal: cut.signal }).then(
      () => 'whole',
      () => 'cut off',
    );
    const begun = async () => ((await client.list(`${PREFIX}log/kv/`, options))?.kvs.length ?? 0) > 0;
    await expect.poll(begun, { interval: 1 }).toBe(true);
    cut.abort();
    const isPart =
      (await ended) === 'cut off' && (await new EtcdReplacement({ client, prefix: PREFIX }).look(options)).kind !== 'log';
    if (isPart) return etcd;
  }
}

describe('from etcd', () => {
  test('under load: each as of one moment, the state no older than the log; into a store of its own, and back', async () => {
    const etcd = await rig();
    const plane = await onEtcd(etcd);
    await plane.propose(...Array.from({ length: 300 }, (_, index) => put(`many-${index}`)));
    let written = 0;
    let stop = false;
    const load = (async () => {
      for (; !stop; written += 1) {
        await plane.commit('n/count', String(written));
        await plane.propose(put(`s${written % 20}`), { key: put('x').key, value: put('x', {}).value });
      }
    })();
    await expect.poll(() => written).toBeGreaterThan(20);
    const file = await archived(plane);
    stop = true;
    await load;

    const archive = await openArchive(file, options);
    onTestFinished(() => archive.close());
    const paths = await pathsOf();
    const result = await restoreBackup({ archive, paths, clock, settle: async (_, keyFile) => keyFile }, options);
    const copy = await embedded(paths.dataDir);
    const head = await copy.log.head(options);
    expect(head.revision).toBe(result.revision);
    const count = Number((await copy.store.get('n/count', options))?.value);
    // The first proposal came before the load.
    expect(count).toBeGreaterThanOrEqual(Number(result.revision) - 2);
    expect(count).toBeLessThanOrEqual(written);
    expect(await copy.propose(put('after'))).toMatchObject({ revision: head.revision + 1n });

    await plane.close();
    const { paths: back } = await restored(etcd, await archived(copy), { force: true });
    const again = await onEtcd(etcd, back.dataDir);
    expect(await services(again.log)).toEqual(await services(copy.log));
  }, 60_000);
});
