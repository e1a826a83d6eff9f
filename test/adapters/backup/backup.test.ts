import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openArchive } from '../../../src/adapters/backup/backup-archive.js';
import { restoreBackup } from '../../../src/adapters/backup/restore-backup.js';
import { StoreBackups } from '../../../src/adapters/backup/store-backups.js';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { SqliteOrderedLog } from '../../../src/adapters/log/sqlite-ordered-log.js';
import { SqliteControlStore } from '../../../src/adapters/store/sqlite-control-store.js';
import { RemoteLogConsumer } from '../../../src/app/log/remote-log-consumer.js';
import { ViewKeeper } from '../../../src/app/log/view-keeper.js';
import type { AgentError } from '../../../src/domain/kernel/errors.js';
import type { AbsolutePath } from '../../../src/domain/kernel/paths.js';
import { makePaths } from '../../../src/domain/kernel/paths.js';
import { STALE_AFTER_MS } from '../../../src/domain/log/freshness.js';
import type { Change } from '../../../src/domain/log/model.js';
import { qualifiedName } from '../../../src/domain/resource/model.js';
import type { FormerStore } from '../../../src/ports/store/control-store.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeViewStore } from '../../fakes/fake-view-store.js';
import { drop, options, put } from '../../support/remote-rig.js';
import { tempFolder } from '../../support/temp-folder.js';

const clock = new SystemClock({ unref: true });
const KEY = `k-1 ${'A'.repeat(43)}=\n`;

/** A data directory of a control plane, its stores open. */
async function controlPlane(dataDir?: string) {
  const paths = makePaths({ root: '/' as AbsolutePath, dataDir: (dataDir ?? (await tempFolder())) as AbsolutePath });
  const log = new SqliteOrderedLog({ file: paths.logDb, clock });
  const store = new SqliteControlStore({ file: paths.controlDb, clock });
  const close = async () => {
    await log.close();
    await store.close();
  };
  onTestFinished(close);
  await log.open(options);
  await store.open(options);
  if (!existsSync(paths.sealingKey)) await writeFile(paths.sealingKey, KEY, { mode: 0o600 });
  const backups = new StoreBackups({ log, store, sealingKey: paths.sealingKey, folder: paths.backup, version: '1.2.3', clock });
  const propose = (...changes: readonly Change[]) => log.propose({ changes, preconditions: [] }, options);
  const commit = (key: string, value: string) => store.commit([], [{ key, value }], options);
  return { paths, log, store, backups, propose, commit, close };
}

async function archived({ backups }: Pick<Awaited<ReturnType<typeof controlPlane>>, 'backups'>, withKey = true): Promise<string> {
  const file = join(await tempFolder(), 'backup.tar');
  const pieces: Uint8Array[] = [];
  for await (const piece of backups.take({ withKey }, options)) pieces.push(piece);
  await writeFile(file, Buffer.concat(pieces));
  return file;
}

async function restored(file: string, dataDir?: string) {
  const paths = makePaths({ root: '/' as AbsolutePath, dataDir: (dataDir ?? (await tempFolder())) as AbsolutePath });
  const archive = await openArchive(file, options);
  onTestFinished(() => archive.close());
  const result = await restoreBackup({ archive, paths, clock, settle: async (_, keyFile) => keyFile }, options);
  return { paths, result, archive };
}

/** The consumer of an agent on whatever control plane is there. */
function agentOf(first: SqliteOrderedLog) {
  const at = { log: first };
  const parts = { clock, random: () => 0, logger: new FakeLogger() };
  const keeper = new ViewKeeper({ ...parts, store: new FakeViewStore({}), binding: { fleet: 'f', nid: 'n', registration: 'r' } });
  const log = {
    propose: (...args: Parameters<SqliteOrderedLog['propose']>) => at.log.propose(...args),
    head: (...args: Parameters<SqliteOrderedLog['head']>) => at.log.head(...args),
    snapshot: (...args: Parameters<SqliteOrderedLog['snapshot']>) => at.log.snapshot(...args),
    watch: (...args: Parameters<SqliteOrderedLog['watch']>) => at.log.watch(...args),
  };
  const consumer = new RemoteLogConsumer({
    ...parts,
    log,
    keeper,
    bootTime: () => clock.monotonic(),
    staleAfterMs: STALE_AFTER_MS,
  });
  onTestFinished(() => consumer.stop(options.signal));
  const known = ['dropped', 'new', 'newest', 'old'] as const;
  const services = () => known.filter((name) => consumer.state.service(qualifiedName('default', name)) !== undefined);
  return { at, consumer, services };
}

describe('a backup', () => {
  test('under load: each store as of one moment, the state no older than the log', async () => {
    const plane = await controlPlane();
    let written = 0;
    let stop = false;
    const load = (async () => {
      for (; !stop; written += 1) {
        await plane.commit('n/count', String(written));
        await plane.propose(put(`s${written % 20}`, {}), { key: put('x').key, value: put(`x`, {}).value });
      }
    })();
    while (written < 20) await new Promise((resolve) => setTimeout(resolve, 5));
    const file = await archived(plane);
    const atEnd = written;
    stop = true;
    await load;
    const { result, archive, paths } = await restored(file);
    expect(await readdir(plane.paths.dataDir)).not.toContain('backup');
    expect(archive.manifest).toMatchObject({ program: '1.2.3', revision: result.revision });
    const copy = await controlPlane(paths.dataDir);
    const count = Number((await copy.store.get('n/count', options))?.value);
    // Before each proposal its number was committed.
    expect(count).toBeGreaterThanOrEqual(Number(result.revision) - 1);
    expect(count).toBeLessThanOrEqual(atEnd + 1);
    expect((await copy.log.head(options)).revision).toBe(result.revision);
    expect(await readFile(paths.sealingKey, 'utf8')).toBe(KEY);
  }, 60_000);

  test('without the key, the key of the place is needed; nothing is changed without one', async () => {
    const plane = await controlPlane();
    const file = await archived(plane, false);
    const folder = await tempFolder();
    await expect(restored(file, folder)).rejects.toMatchObject({ code: 'store.key_missing' });
    expect(await readdir(folder)).toEqual([]);
    await writeFile(join(folder, 'sealing.key'), KEY, { mode: 0o600 });
    expect((await restored(file, folder)).result.settled).toBe(join(folder, 'sealing.key'));
  });

  test('two at once: one', async () => {
    const { backups } = await controlPlane();
    const first = backups.take({ withKey: false }, options)[Symbol.asyncIterator]();
    await first.next();
    const second = backups.take({ withKey: false }, options)[Symbol.asyncIterator]();
    await expect(second.next()).rejects.toMatchObject({ code: 'backup.busy' });
    await first.return?.();
    expect((await backups.take({ withKey: false }, options)[Symbol.asyncIterator]().next()).done).toBe(false);
  });

  test.each([
    ['cut', (bytes: Buffer) => bytes.subarray(0, bytes.length - 2_000)],
    ['with another byte', (bytes: Buffer) => bytes.fill(bytes.readUInt8(9_000) ^ 1, 9_000, 9_001)],
    ['empty', () => Buffer.alloc(0)],
  ])('an archive that is %s is refused before anything is touched', async (_, change) => {
    const file = await archived(await controlPlane());
    await writeFile(file, change(await readFile(file)));
    const folder = await tempFolder();
    await expect(restored(file, folder)).rejects.toMatchObject({ code: 'backup.invalid' });
    expect(await readdir(folder)).toEqual([]);
  });
});

describe('a restore', () => {
  test('F4: what is to be replaced is asked first; what is damaged, or not there, stops nothing', async () => {
    const plane = await controlPlane();
    await plane.commit('enrol/revoked/serial/a1', 'revoked');
    const file = await archived(plane);
    await plane.commit('enrol/revoked/serial/b2', 'revoked');
    await plane.close();
    const { dataDir, controlDb } = plane.paths;
    const asked: (readonly string[] | string | undefined)[] = [];
    const restore = async (folder: string) => {
      const archive = await openArchive(file, options);
      onTestFinished(() => archive.close());
      const paths = makePaths({ root: '/' as AbsolutePath, dataDir: folder as AbsolutePath });
      const settle = async (_: unknown, _keyFile: string, former?: FormerStore) => {
        const found = former?.list('enrol/revoked/', options).then((all) => all.map(({ key }) => key.slice(-2)));
        asked.push(await found?.catch((error: AgentError) => error.code));
      };
      await restoreBackup({ archive, paths, clock, settle }, options);
    };
    await restore(dataDir);
    await writeFile(controlDb, 'no database');
    await restore(dataDir);
    await restore(await tempFolder());
    expect(asked).toEqual([['a1', 'b2'], 'store.corrupt', undefined]);
  });

  test('E3, J4: agents remove nothing that was not removed by an operator, and come back into step when one confirms', async () => {
    const plane = await controlPlane();
    await plane.propose(put('old'), put('dropped'));
    const agent = agentOf(plane.log);
    await agent.consumer.start(options.signal);
    await expect.poll(agent.services).toEqual(['dropped', 'old']);
    const file = await archived(plane);
    await plane.propose(put('new'));
    await plane.propose(drop('dropped'));
    await expect.poll(agent.services).toEqual(['new', 'old']);
    await plane.close();

    const { paths, result } = await restored(file, plane.paths.dataDir);
    expect(result.aside.map((name) => name.replace(/.*\//, ''))).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^control\.db\.replaced-\d{8}T\d{6}Z$/),
        expect.stringMatching(/^log\.db\.corrupt-\d{8}T\d{6}Z$/),
      ]),
    );
    const again = await controlPlane(paths.dataDir);
    expect((await again.log.head(options)).logId).toBe(result.logId);
    agent.at.log = again.log;
    await expect
      .poll(() => agent.consumer.problems().map(({ reason }) => reason), { timeout: 10_000 })
      .toEqual([expect.stringContaining('MASS_REMOVAL_HELD: the control plane has another log')]);
    expect(agent.services()).toEqual(['new', 'old']);
    await again.propose(put('new'), put('newest'), drop('dropped'));
    await expect.poll(agent.services, { timeout: 10_000 }).toEqual(['new', 'newest', 'old']);
    expect(agent.consumer.problems()).toEqual([]);
  }, 60_000);

  test('a key of another store is no key for it, and what is there stays', async () => {
    const plane = await controlPlane();
    const file = await archived(plane);
    await plane.commit('later', '1');
    await plane.close();
    const archive = await openArchive(file, options);
    onTestFinished(() => archive.close());
    const before = await readdir(plane.paths.dataDir);
    const settle = () => Promise.reject(new Error('told to fail'));
    await expect(restoreBackup({ archive, paths: plane.paths, clock, settle }, options)).rejects.toThrow('told to fail');
    expect(await readdir(plane.paths.dataDir)).toEqual(before);
    expect((await (await controlPlane(plane.paths.dataDir)).store.get('later', options))?.value).toBe('1');
  });

  test('a key that was there keeps its content under another name', async () => {
    const file = await archived(await controlPlane());
    const folder = await tempFolder();
    await writeFile(join(folder, 'sealing.key'), 'other', { mode: 0o600 });
    const { result } = await restored(file, folder);
    expect(await readFile(result.aside[0] ?? '', 'utf8')).toBe('other');
    expect(await readFile(join(folder, 'sealing.key'), 'utf8')).toBe(KEY);
    expect((await readdir(folder)).filter((name) => /restoring|from-backup/.test(name))).toEqual([]);
  });
});
