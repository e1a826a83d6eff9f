import { appendFile, mkdir, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { verifyAuditLog } from '../../../src/adapters/audit/verify-audit-log.js';
import type { AuditHead } from '../../../src/domain/audit/model.js';
import { AUDIT_LIMITS } from '../../../src/domain/audit/retention.js';
import { auditRecord } from '../../support/audit-record.js';
import { tempFolder } from '../../support/temp-folder.js';
import { auditLogIn, names, never } from './support/audit-rig.js';

const limits = { ...AUDIT_LIMITS, fileBytes: 1_500 };

/** 20 records in several files. */
async function written() {
  const folder = await tempFolder();
  const { log, file } = auditLogIn(folder, { limits });
  await log.open(never);
  for (let i = 0; i < 20; i++) await log.append(auditRecord(`t${i}`), never);
  await log.close();
  const closed = (await names(folder)).filter((name) => name !== 'audit.log').sort((a, b) => numberOf(a) - numberOf(b));
  const head = log.head();
  if (head === undefined || closed.length < 3) throw new Error('too little was written');
  return { folder, file, head, closed: closed.map((name) => join(folder, name)) };
}

function numberOf(name: string): number {
  return Number(/\d+/.exec(name)?.[0]);
}

/** Rewrites the lines of a file. */
async function edit(file: string, change: (lines: string[]) => readonly string[]): Promise<void> {
  const lines = (await readFile(file, 'utf8')).slice(0, -1).split('\n');
  await writeFile(file, `${change(lines).join('\n')}\n`);
}

const breakOf = async (file: string, known?: AuditHead) => {
  const { break: found } = await verifyAuditLog(file, known, never);
  return found === undefined ? 'whole' : `${found.kind} ${found.file}:${found.number}`;
};

describe('what is found', () => {
  test('a whole log: counts, and its head', async () => {
    const { file, head, closed } = await written();
    expect(await verifyAuditLog(file, head, never)).toEqual({
      files: closed.length + 1,
      lines: Number(head.sequence),
      first: 1n,
      head,
      anchor: undefined,
      recovered: 0,
      knownMet: true,
      unfinished: 0,
      break: undefined,
    });
  });

  test('none at all, and a folder that is not there', async () => {
    const folder = await tempFolder();
    const nothing = { files: 0, lines: 0, first: undefined, head: undefined, break: undefined };
    expect(await verifyAuditLog(join(folder, 'audit.log'), undefined, never)).toMatchObject(nothing);
    expect(await verifyAuditLog(join(folder, 'none/audit.log'), undefined, never)).toMatchObject(nothing);
    expect(await breakOf(join(folder, 'audit.log'), { sequence: 3n, digest: 'x' })).toBe('cut :0');
  });

  test('a line that is just being written is no break', async () => {
    const { file } = await written();
    await appendFile(file, '{"seq":');
    expect(await verifyAuditLog(file, undefined, never)).toMatchObject({ unfinished: 7, break: undefined });
    await appendFile(file, 'x'.repeat(3_000_000));
    expect(await verifyAuditLog(file, undefined, never)).toMatchObject({ unfinished: 3_000_007, break: undefined });
  });

  test('an abort ends it', async () => {
    const { file } = await written();
    const reason = new Error('enough');
    await expect(verifyAuditLog(file, undefined, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  test('what cannot be read is an error, no verdict', async () => {
    const folder = await tempFolder();
    await mkdir(join(folder, 'audit.log'));
    await expect(verifyAuditLog(join(folder, 'audit.log'), undefined, never)).rejects.toMatchObject({
      code: 'audit.unreadable',
      message: expect.stringContaining('EISDIR'),
    });
  });
});

describe('what an enemy does', () => {
  type Rig = Awaited<ReturnType<typeof written>>;
  test.each<[string, (rig: Rig) => Promise<unknown>, string]>([
    [
      'changes a byte',
      ({ closed }) => edit(closed[1] ?? '', (lines) => lines.with(2, (lines[2] ?? '').replace('r1', 'r2'))),
      'changed 1:3',
    ],
    [
      'changes a byte to another that is read alike',
      async ({ closed }) => {
        const bytes = await readFile(closed[1] ?? '');
        bytes[bytes.indexOf('allowed')] = 0xff;
        await writeFile(closed[1] ?? '', bytes);
      },
      'changed 1:2',
    ],
    [
      'changes the last line of a former file',
      ({ closed }) =>
        edit(closed[0] ?? '', (lines) => [...lines.slice(0, -1), (lines.at(-1) ?? '').replace('allowed', 'denied')]),
      'changed 0:-1',
    ],
    ['deletes a line', ({ closed }) => edit(closed[1] ?? '', (lines) => lines.toSpliced(2, 1)), 'missing 1:3'],
    [
      'deletes the last line of a former file',
      ({ closed }) => edit(closed[0] ?? '', (lines) => lines.slice(0, -1)),
      'missing 1:1',
    ],
    [
      'swaps two lines',
      ({ closed }) => edit(closed[1] ?? '', (lines) => lines.with(2, lines[3] ?? '').with(3, lines[2] ?? '')),
      'out_of_order 1:3',
    ],
    [
      'inserts a line',
      ({ closed }) => edit(closed[1] ?? '', (lines) => lines.toSpliced(2, 0, lines[1] ?? '')),
      'out_of_order 1:3',
    ],
    ['appends garbage to a former file', ({ closed }) => appendFile(closed[0] ?? '', 'garbage'), 'unreadable 0:+1'],
    ['removes the oldest file', ({ closed }) => rm(closed[0] ?? ''), 'beginning audit.log:0'],
    ['removes a file in the middle', ({ closed }) => rm(closed[1] ?? ''), 'missing 2:1'],
    ['exchanges two files', ({ closed, folder }) => exchange(closed[0] ?? '', closed[1] ?? '', folder), 'out_of_order 1:1'],
    [
      'writes a line of megabytes',
      ({ closed }) => edit(closed[1] ?? '', (lines) => lines.with(2, 'x'.repeat(5_000_000))),
      'unreadable 1:3',
    ],
  ])('%s: found and named', async (_, act, expected) => {
    const rig = await written();
    const counts = await Promise.all(rig.closed.map(async (file) => (await readFile(file, 'utf8')).split('\n').length - 1));
    await act(rig);
    // `changed 0:-1`: in the oldest file, the last line.
    const [kind = '', place = ''] = expected.split(' ');
    const [file = '', number = ''] = place.split(':');
    const index = Number(file);
    const name = Number.isNaN(index) ? file : (rig.closed[index]?.slice(rig.folder.length + 1) ?? '');
    const count = counts[index] ?? 0;
    const line = number === '-1' ? count : number === '+1' ? count + 1 : Number(number);
    expect(await breakOf(rig.file, rig.head)).toBe(`${kind} ${name}:${line}`);
  });

  test('cuts the tail: found where the head is known, and only there', async () => {
    const { file, head } = await written();
    const text = await readFile(file, 'utf8');
    const lines = text.split('\n').length - 1;
    await truncate(file, text.trimEnd().lastIndexOf('\n') + 1);
    expect(await breakOf(file)).toBe('whole');
    expect(await breakOf(file, head)).toBe(`cut audit.log:${lines - 1}`);
  });

  test('changes the last line: found where the head is known', async () => {
    const { file, head } = await written();
    await edit(file, (lines) => [...lines.slice(0, -1), (lines.at(-1) ?? '').replace('allowed', 'denied')]);
    expect(await breakOf(file)).toBe('whole');
    expect(await breakOf(file, head)).toMatch(/^other_head audit.log:/);
  });

  test('writes the whole log anew, with digests that fit: found where a head is known', async () => {
    const { file, head } = await written();
    const forged = auditLogIn(await tempFolder());
    await forged.log.open(never);
    for (let i = 0; i < 40; i++) await forged.log.append(auditRecord('forged'), never);
    await forged.log.close();
    expect(await breakOf(forged.file)).toBe('whole');
    expect(await breakOf(forged.file, head)).toMatch(/^other_head/);
    expect(await breakOf(file, head)).toBe('whole');
  });
});

test('H3: a log that is being written, rotated and pruned meanwhile has no break', { timeout: 60_000 }, async () => {
  const folder = await tempFolder();
  const { log, file } = auditLogIn(folder, { limits: { ...limits, fileBytes: 200_000, files: 4 } });
  await log.open(never);
  let writing = true;
  const writer = (async () => {
    for (let i = 0; writing; i++) await log.append(auditRecord(`t${i}`), never);
  })();
  const found: (string | undefined)[] = [];
  for (let i = 0; i < 20; i++) found.push((await verifyAuditLog(file, log.head(), never)).break?.problem);
  writing = false;
  await writer;
  await log.close();
  expect(found.filter((problem) => problem !== undefined)).toEqual([]);
});

async function exchange(a: string, b: string, folder: string): Promise<void> {
  const aside = join(folder, 'aside');
  await rename(a, aside);
  await rename(b, a);
  await rename(aside, b);
}
