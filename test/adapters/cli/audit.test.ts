import { appendFile, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { FileAuditLog } from '../../../src/adapters/audit/file-audit-log.js';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { verifyAudit } from '../../../src/composition/audit.js';
import { formatHead } from '../../../src/domain/audit/head.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { auditRecord } from '../../support/audit-record.js';
import { run } from '../../support/cli-rig.js';
import { tempFolder } from '../../support/temp-folder.js';

const never = { signal: new AbortController().signal };

/** An open log of three lines, as a daemon has it. */
async function rig() {
  const folder = await tempFolder();
  const file = `${folder}/audit.log`;
  const log = new FileAuditLog({ file, clock: new SystemClock({ unref: true }), logger: new FakeLogger() });
  await log.open(never);
  for (const tag of ['a', 'b', 'c']) await log.append(auditRecord(tag), never);
  const head = log.head();
  if (head === undefined) throw new Error('nothing was written');
  const verify = (...args: readonly string[]) =>
    run(['audit', 'verify', '--data-dir', folder, ...args], { local: { verifyAudit } });
  return { file, log, head: formatHead(head), verify };
}

test('H1: a whole log, while its daemon has it open and when it has ended', async () => {
  const { file, log, head, verify } = await rig();
  const whole = {
    ...{ code: 0, err: '' },
    out: `AUDIT LOG  ${file}\nstate      whole\nlines      3 in 1 files, from 1\nhead       ${head}\n`,
  };
  expect(await verify()).toEqual(whole);
  await log.close();
  expect(await verify()).toEqual(whole);
});

test('H1: a line that was changed is named, in every format with code 1', async () => {
  const { file, log, verify } = await rig();
  await log.close();
  await writeFile(file, (await readFile(file, 'utf8')).replace('"b"', '"x"'));
  expect(await verify()).toMatchObject({ code: 1, out: expect.stringContaining('broken at audit.log:2: line 2 is not as') });
  const { code, out } = await verify('-o', 'json');
  expect([code, JSON.parse(out)]).toMatchObject([1, { whole: false, break: { kind: 'changed', number: 2 } }]);
});

test('H2: an end that was cut shows only against a head that somebody else has kept', async () => {
  const { file, log, head, verify } = await rig();
  await log.close();
  expect((await verify('--head', head)).out).toContain('known head  is in it\n');
  const text = await readFile(file, 'utf8');
  await truncate(file, text.trimEnd().lastIndexOf('\n') + 1);
  expect((await verify()).code).toBe(0);
  expect(await verify('--head', head)).toMatchObject({ code: 1, out: expect.stringContaining('lines 3 to 3') });
});

test('a line that is being written is no break', async () => {
  const { file, log, verify } = await rig();
  await log.close();
  await appendFile(file, '{"seq":4');
  expect(await verify()).toMatchObject({ code: 0, out: expect.stringContaining('unfinished  8 bytes') });
});

test('no log at all is not taken for a good one, and a head that is none for no head', async () => {
  const { file, log, verify } = await rig();
  await log.close();
  await rm(file);
  expect(await verify()).toEqual({ code: 1, out: '', err: `there is no audit log ${file}\n` });
  expect(JSON.parse((await verify('-o', 'json')).out)).toMatchObject({ whole: false, files: 0 });
  expect(await verify('--head', '12')).toMatchObject({ code: 2, err: expect.stringContaining('--head') });
});
