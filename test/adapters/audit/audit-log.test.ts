import { createHash } from 'node:crypto';
import { appendFile, mkdir, readFile, rename, rm, stat, symlink, truncate, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { verifyAuditLog } from '../../../src/adapters/audit/verify-audit-log.js';
import { AUDIT_LIMITS } from '../../../src/domain/audit/retention.js';
import { auditLogContract } from '../../contract/audit-log.contract.js';
import { FakeAuditLog } from '../../fakes/fake-audit-log.js';
import { auditRecord } from '../../support/audit-record.js';
import { tempFolder } from '../../support/temp-folder.js';
import { auditLogIn, FailingDisk, linesOf, names, never } from './support/audit-rig.js';

auditLogContract('fake', async () => {
  const log = new FakeAuditLog();
  return {
    log,
    spoil: async () => log.fill(),
    mend: async () => log.free(),
    tags: async () => log.records.map(({ tag }) => tag),
    close: async () => {},
  };
});

auditLogContract('file', async () => {
  const folder = await tempFolder();
  const disk = new FailingDisk();
  const { log, file } = auditLogIn(folder, { openFile: disk.openFile });
  return {
    log,
    spoil: async () => disk.fail('write', 'ENOSPC', { after: true }),
    mend: async () => disk.mend(),
    tags: async () => (await linesOf(file)).map(({ tag }) => String(tag)),
    close: () => log.close(),
  };
});

const small = { ...AUDIT_LIMITS, fileBytes: 2_000 };
const intact = (file: string) => verifyAuditLog(file, undefined, never).then((report) => report.break ?? 'intact');

async function fill(log: ReturnType<typeof auditLogIn>['log'], count: number, from = 0): Promise<void> {
  for (let i = 0; i < count; i++) await log.append(auditRecord(`t${from + i}`), never);
}

describe('H1: the file', () => {
  test('JSON lines for this user alone, each with the digest of the bytes of the one before', async () => {
    const folder = await tempFolder();
    const { log, clock, file } = auditLogIn(join(folder, 'deep/er'));
    await log.open(never);
    await log.append(auditRecord('a'), never);
    await clock.advance(1500);
    await log.append(auditRecord('b', { line: 'outcome', result: 'done' }), never);
    const [first = ''] = (await readFile(file, 'utf8')).split('\n');
    const common = { who: 'server:s1', type: 'RUN_WEB_REQUEST', payload: 'a'.repeat(64), rule: 'r1' };
    const start = Date.UTC(2026, 0, 31, 12);
    expect(await linesOf(file)).toEqual([
      { seq: 1, time: start, offset: 0, line: 'decision', ...common, tag: 'a', result: 'allowed', prev: '0'.repeat(64) },
      {
        ...{ seq: 2, time: start + 1500, offset: 1500, line: 'outcome', ...common, tag: 'b', result: 'done' },
        prev: createHash('sha256').update(first).digest('hex'),
      },
    ]);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    await log.close();
  });

  test('goes on where the last process ended', async () => {
    const folder = await tempFolder();
    for (const tag of ['a', 'b', 'c']) {
      const { log } = auditLogIn(folder);
      await log.open(never);
      await log.append(auditRecord(tag), never);
      await log.close();
    }
    const { log, file } = auditLogIn(folder);
    await log.open(never);
    expect((await linesOf(file)).map(({ seq, tag }) => [seq, tag])).toEqual([
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
    ]);
    expect(log.head()).toEqual((await verifyAuditLog(file, undefined, never)).head);
    expect(await names(folder)).toEqual(['audit.log']);
    await log.close();
  });

  test('10,000 records at once: all there, in order, in a few fsyncs', { timeout: 60_000 }, async () => {
    const folder = await tempFolder();
    const { log, file } = auditLogIn(folder);
    await log.open(never);
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: 10_000 }, (_, i) => log.append(auditRecord(`t${i}`), never)));
    // Alone, an fsync takes 100 µs to 20 ms: 10,000 would take from 1 to 200 s.
    expect(performance.now() - startedAt).toBeLessThan(20_000);
    await log.close();
    expect((await linesOf(file)).map(({ tag }) => tag)).toEqual(Array.from({ length: 10_000 }, (_, i) => `t${i}`));
    expect(await verifyAuditLog(file, undefined, never)).toMatchObject({ lines: 10_000, break: undefined });
  });

  test('an abort while it waits takes it out', async () => {
    const { log, file } = auditLogIn(await tempFolder());
    await log.open(never);
    const abort = new AbortController();
    const kept = log.append(auditRecord('kept'), never);
    const dropped = log.append(auditRecord('dropped'), { signal: abort.signal });
    abort.abort(new Error('no more'));
    await expect(dropped).rejects.toThrow('no more');
    await kept;
    expect((await linesOf(file)).map(({ tag }) => tag)).toEqual(['kept']);
    await log.close();
  });
});

describe('H2: a torn end', () => {
  async function torn(tail: string | Buffer): Promise<{ folder: string; file: string; good: string }> {
    const folder = await tempFolder();
    const { log, file } = auditLogIn(folder);
    await log.open(never);
    await fill(log, 3);
    await log.close();
    const good = await readFile(file, 'utf8');
    await appendFile(file, tail);
    return { folder, file, good };
  }

  test.each<[string, string | Buffer]>([
    ['half a line', '{"seq":4,"time":17'],
    ['a whole line without its line feed', '{"seq":4,"time":1,"offset":1,"line":"pruned","to":1,"digest":"'],
    ['zeros, as file systems leave them', Buffer.alloc(5_000_000)],
    ['bytes that are no text', Buffer.from([0xff, 0xfe, 10, 0xc0])],
    ['lines that are none', 'x\n\n\ny\n'],
    ['less than the line that says so', '{'],
  ])('%s is set aside, and a line says so', async (_, tail) => {
    const { folder, file, good } = await torn(tail);
    const { log, logger } = auditLogIn(folder);
    await log.open(never);
    const [first, name = ''] = await names(folder);
    expect([first, name]).toEqual(['audit.log', expect.stringMatching(/^audit\.torn-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z$/)]);
    expect(Buffer.compare(await readFile(join(folder, name)), Buffer.from(tail))).toBe(0);
    const lines = await linesOf(file);
    const bytes = Buffer.byteLength(tail);
    expect(lines.slice(3)).toEqual([
      expect.objectContaining({ seq: 4, line: 'recovered', file: name, bytes, digest: lines[3]?.prev }),
    ]);
    expect((await readFile(file, 'utf8')).startsWith(good)).toBe(true);
    expect(logger.dump('warn')).toBe('warn the torn end of the audit log was set aside');
    await log.append(auditRecord('after'), never);
    await log.close();
    expect(await verifyAuditLog(file, undefined, never)).toMatchObject({ lines: 5, recovered: 1, break: undefined });
  });

  test('again and again, at the same time by the file: each has a file of its own', async () => {
    const { folder, file } = await torn('');
    const time = new Date(1_700_000_000_000);
    for (let round = 0; round < 3; round++) {
      await appendFile(file, 'x'.repeat(round + 1));
      await utimes(file, time, time);
      const { log } = auditLogIn(folder);
      await log.open(never);
      await log.close();
    }
    expect((await names(folder)).filter((name) => name.includes('torn'))).toEqual([
      'audit.torn-2023-11-14T22-13-20.000Z',
      'audit.torn-2023-11-14T22-13-20.001Z',
      'audit.torn-2023-11-14T22-13-20.002Z',
    ]);
    expect(await verifyAuditLog(file, undefined, never)).toMatchObject({ recovered: 3, break: undefined });
  });

  test('a file in which no line is left: the chain goes on from the former file', async () => {
    const folder = await tempFolder();
    const before = auditLogIn(folder, { limits: small });
    await before.log.open(never);
    await fill(before.log, 8);
    const head = before.log.head();
    await before.log.close();
    await truncate(before.file, 0);
    await writeFile(before.file, 'garbage');
    const { log, file } = auditLogIn(folder, { limits: small });
    await log.open(never);
    expect((await linesOf(file)).map(({ line }) => line)).toEqual(['rotated', 'recovered']);
    expect(await intact(file)).toBe('intact');
    // The head that somebody else kept tells what is gone.
    const report = await verifyAuditLog(file, { sequence: (head?.sequence ?? 0n) + 5n, digest: 'x' }, never);
    expect(report.break?.kind).toBe('cut');
    await log.close();
  });

  test('a broken line in the middle stays for the check to find: nothing but an end is torn off', async () => {
    const { folder, file, good } = await torn('');
    await writeFile(file, good.replace('"t1"', '"tX"').replace('{"seq":1', '("seq":1'));
    const { log } = auditLogIn(folder);
    await log.open(never);
    await log.append(auditRecord('after'), never);
    await log.close();
    expect(await names(folder)).toEqual(['audit.log']);
    expect(await verifyAuditLog(file, undefined, never)).toMatchObject({ lines: 4, break: { kind: 'unreadable', number: 1 } });
  });
});

describe('H3: rotation and retention', () => {
  test('a full file gets a name of its own, and the new one begins with it', async () => {
    const folder = await tempFolder();
    const { log, file } = auditLogIn(folder, { limits: small });
    await log.open(never);
    await fill(log, 20);
    await log.close();
    const files = await names(folder);
    expect(files.length).toBeGreaterThan(2);
    expect(files.filter((name) => !/^audit(-[1-9]\d*)?\.log$/.test(name))).toEqual([]);
    const [first] = await linesOf(file);
    const last = Number(first?.seq) - 1;
    expect(first).toMatchObject({ line: 'rotated', file: `audit-${last}.log`, last, digest: first?.prev });
    expect((await linesOf(join(folder, `audit-${last}.log`))).at(-1)?.seq).toBe(last);
    expect(await verifyAuditLog(file, undefined, never)).toMatchObject({ files: files.length, first: 1n, break: undefined });
  });

  test('the oldest files go when there are too many, after a line that says so', async () => {
    const folder = await tempFolder();
    const { log, file } = auditLogIn(folder, { limits: { ...small, files: 3 } });
    await log.open(never);
    await fill(log, 60);
    expect(await names(folder)).toHaveLength(3);
    const report = await verifyAuditLog(file, log.head(), never);
    expect(report).toMatchObject({ knownMet: true, break: undefined, files: 3 });
    expect(report.anchor?.sequence).toBe((report.first ?? 0n) - 1n);
    await log.close();
    // One more is gone, by another hand.
    await rm(join(folder, (await names(folder))[0] ?? ''));
    expect(await verifyAuditLog(file, undefined, never)).toMatchObject({ break: { kind: 'beginning', sequence: report.first } });
  });

  test('files of more than a year ago go with the next line; not for a clock that jumps in the first hour', async () => {
    const folder = await tempFolder();
    const { log, clock, file } = auditLogIn(folder, { limits: small });
    await log.open(never);
    await fill(log, 20);
    const before = await names(folder);
    expect(before.length).toBeGreaterThan(2);
    const [now, year] = [clock.now(), 366 * 24 * 60 * 60 * 1000];
    clock.setWall(now + 10 * year);
    await fill(log, 1, 20);
    expect(await names(folder)).toEqual(expect.arrayContaining([...before]));
    clock.setWall(now);
    await clock.advance(60 * 60 * 1000);
    await fill(log, 1, 21);
    expect(await names(folder)).toEqual(expect.arrayContaining([...before]));
    clock.setWall(now + year);
    await fill(log, 1, 22);
    expect((await names(folder)).length).toBeLessThanOrEqual(2);
    expect(await intact(file)).toBe('intact');
    await log.close();
  });

  test('numbers sort as numbers, and other files are none of ours', async () => {
    const folder = await tempFolder();
    await mkdir(join(folder, 'audit-x.log'));
    await writeFile(join(folder, 'audit-007.log'), '');
    await writeFile(join(folder, 'other-5.log'), '');
    const { log, file } = auditLogIn(folder, { limits: { ...small, fileBytes: 400 } });
    await log.open(never);
    await fill(log, 30);
    await log.close();
    expect(await names(folder)).toEqual(expect.arrayContaining(['audit-007.log', 'audit-x.log', 'other-5.log']));
    expect(await intact(file)).toBe('intact');
    expect((await verifyAuditLog(file, undefined, never)).files).toBe((await names(folder)).length - 3);
  });

  test('a crash between the renaming and the new file', async () => {
    const folder = await tempFolder();
    const { log, file } = auditLogIn(folder);
    await log.open(never);
    await fill(log, 3);
    await log.close();
    await rename(file, join(folder, 'audit-3.log'));
    const again = auditLogIn(folder);
    await again.log.open(never);
    await fill(again.log, 1);
    await again.log.close();
    expect((await linesOf(file)).map(({ seq, line }) => [seq, line])).toEqual([
      [4, 'rotated'],
      [5, 'decision'],
    ]);
    expect(await intact(file)).toBe('intact');
  });

  test('a former file that stands where the next one would go is not replaced', async () => {
    const folder = await tempFolder();
    const { log } = auditLogIn(folder, { limits: { ...small, fileBytes: 1 } });
    await log.open(never);
    await log.append(auditRecord('a'), never);
    await writeFile(join(folder, 'audit-1.log'), 'evidence');
    const refused = log.append(auditRecord('b'), never);
    await expect(refused).rejects.toMatchObject({
      code: 'audit.not_written',
      message: expect.stringContaining('is there already'),
    });
    expect(await readFile(join(folder, 'audit-1.log'), 'utf8')).toBe('evidence');
    await log.close();
  });
});

describe('K1: disks that fail', () => {
  async function opened(more = {}) {
    const folder = await tempFolder();
    const disk = new FailingDisk();
    const rig = auditLogIn(folder, { openFile: disk.openFile, ...more });
    await rig.log.open(never);
    return { ...rig, folder, disk };
  }

  test.each([
    ['write', 'ENOSPC', false],
    ['write', 'ENOSPC', true],
    ['write', 'EIO', true],
    ['write', 'EROFS', false],
    ['datasync', 'EIO', false],
    ['datasync', 'EIO', true],
  ] as const)(
    '%s fails with %s (some of it done: %s): the handle is dead, the next one goes on without it',
    async (call, code, after) => {
      const { log, disk, file, folder, logger } = await opened();
      await fill(log, 2);
      disk.fail(call, code, { times: 1, after });
      const failed = await Promise.allSettled(['x', 'y'].map((tag) => log.append(auditRecord(tag), never)));
      expect(failed.map((each) => each.status)).toEqual(['rejected', 'rejected']);
      expect(log.problems()).toEqual([
        {
          subject: 'audit log',
          reason: `${file} cannot be written: ${code}`,
          since: expect.any(Number),
          remedy: 'free disk space or mend the disk; the next instruction tries again',
        },
      ]);
      expect(disk.opened).toBe(1);
      await fill(log, 1, 2);
      expect(disk.opened).toBe(2);
      expect((await linesOf(file)).map(({ tag }) => tag)).toEqual(['t0', 't1', 't2']);
      expect(await names(folder)).toEqual(['audit.log']);
      expect(log.problems()).toEqual([]);
      expect(logger.dump()).toBe('error the audit log cannot be written\ninfo the audit log is written again');
      await log.close();
      expect(await intact(file)).toBe('intact');
    },
  );

  test('a failure that lasts is logged once', async () => {
    const { log, disk, logger } = await opened();
    disk.fail('datasync', 'EIO');
    for (let i = 0; i < 5; i++) await expect(fill(log, 1)).rejects.toMatchObject({ code: 'audit.not_written' });
    expect(logger.dump()).toBe('error the audit log cannot be written');
    await log.close();
  });

  test('in the middle of a rotation', async () => {
    for (const call of ['open', 'write', 'datasync'] as const) {
      const { log, disk, file } = await opened({ limits: { ...small, fileBytes: 500 } });
      await fill(log, 2);
      disk.fail(call, 'ENOSPC', { times: 1 });
      await expect(fill(log, 1, 2), call).rejects.toMatchObject({ code: 'audit.not_written' });
      await fill(log, 2, 3);
      await log.close();
      expect(await verifyAuditLog(file, log.head(), never), call).toMatchObject({ break: undefined, knownMet: true });
    }
  });

  test('opening fails: it says so, and is tried again by the next call', async () => {
    const folder = await tempFolder();
    const disk = new FailingDisk();
    disk.fail('open', 'EROFS', { times: 2 });
    const { log, file } = auditLogIn(folder, { openFile: disk.openFile });
    await expect(log.open(never)).rejects.toMatchObject({
      code: 'audit.not_written',
      message: `audit.not_written: ${file} cannot be written: EROFS`,
    });
    await expect(log.open(never)).rejects.toMatchObject({ code: 'audit.not_written' });
    await fill(log, 1);
    await log.open(never);
    expect(log.head()?.sequence).toBe(1n);
    await log.close();
  });

  test('a torn end behind which nothing can be written stays as it is, and is kept once however often that is tried', async () => {
    const { log, file, folder } = await opened();
    await fill(log, 2);
    await log.close();
    await appendFile(file, 'torn');
    const before = await readFile(file);
    const disk = new FailingDisk();
    disk.fail('write', 'ENOSPC', { times: 3 });
    const again = auditLogIn(folder, { openFile: disk.openFile });
    await expect(again.log.open(never)).rejects.toMatchObject({ code: 'audit.not_written' });
    for (let i = 0; i < 2; i++) await expect(fill(again.log, 1)).rejects.toMatchObject({ code: 'audit.not_written' });
    expect(Buffer.compare(await readFile(file), before)).toBe(0);
    await again.log.open(never);
    await again.log.close();
    expect((await names(folder)).filter((name) => name.includes('torn'))).toHaveLength(1);
    expect(await intact(file)).toBe('intact');
  });

  test('lines that were durable and are gone: their numbers are not used again, and it is a problem for good', async () => {
    const { log, disk, file, logger } = await opened();
    await fill(log, 3);
    const size = (await stat(file)).size;
    disk.fail('datasync', 'EIO', { times: 1 });
    await expect(fill(log, 1, 3)).rejects.toThrow();
    await truncate(file, Math.floor(size / 3));
    await fill(log, 1, 4);
    expect(log.head()?.sequence).toBe(4n);
    expect(log.problems()).toMatchObject([
      { reason: expect.stringMatching(/has lost lines: line 3 was durable, and the last one that is there is 1/) },
    ]);
    expect(logger.dump()).toContain('error the audit log has lost lines');
    expect(await verifyAuditLog(file, undefined, never)).toMatchObject({ break: { kind: 'missing', sequence: 2n } });
    await log.close();
  });

  test.each(['removed', 'renamed', 'replaced'])(
    'a file that is %s while it is open: the next line goes where it is looked for',
    async (what) => {
      const { log, file, folder } = await opened();
      await fill(log, 2);
      if (what === 'removed') await rm(file);
      else await rename(file, join(folder, 'elsewhere'));
      if (what === 'replaced') await writeFile(file, '');
      await fill(log, 1, 2);
      expect((await linesOf(file)).map(({ seq, tag }) => [seq, tag])).toEqual([[3, 't2']]);
      expect(log.problems()).toMatchObject([{ subject: 'audit log' }]);
      expect(await verifyAuditLog(file, undefined, never)).toMatchObject({ break: { kind: 'beginning' } });
      await log.close();
    },
  );

  test.each<[string, (file: string) => Promise<unknown>]>([
    ['a folder', (file) => mkdir(file)],
    ['a link to itself', (file) => symlink(file, file)],
    ['a device', (file) => symlink('/dev/null', file)],
  ])('%s in its place is not written to', async (_, put) => {
    const folder = await tempFolder();
    const { log, file } = auditLogIn(folder);
    await put(file);
    await expect(log.open(never)).rejects.toMatchObject({ code: 'audit.not_written' });
    await log.close();
  });
});
