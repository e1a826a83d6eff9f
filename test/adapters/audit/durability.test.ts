import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { verifyAuditLog } from '../../../src/adapters/audit/verify-audit-log.js';
import { sourceArguments } from '../../../src/adapters/threads/typescript-worker.js';
import { tempFolder } from '../../support/temp-folder.js';
import { auditLogIn, linesOf, names, never } from './support/audit-rig.js';

const program = (name: string) => fileURLToPath(new URL(`./support/${name}.ts`, import.meta.url));
const RUNS = 12;

/** Runs the program, kills it `delay` ms after its first acknowledgement, and gives the tags that it had acknowledged. */
async function runAndKill(file: string, run: number, delay: number): Promise<readonly string[]> {
  const child: ChildProcess = spawn(process.execPath, [...sourceArguments, program('append-loop'), file, String(run)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const found: string[] = [];
  if (child.stdout === null) throw new Error('no output');
  for await (const line of createInterface(child.stdout)) {
    if (found.length === 0) setTimeout(() => child.kill('SIGKILL'), delay);
    // The last line may be cut by the kill: it is then no acknowledgement.
    if (line.endsWith(';')) found.push(line.slice(0, -1));
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  expect(child.signalCode).toBe('SIGKILL');
  return found;
}

test(`H1: kill -9, ${RUNS} times: every acknowledged line is there once, and the chain is whole`, {
  timeout: 120_000,
}, async () => {
  const folder = await tempFolder();
  const file = join(folder, 'audit.log');
  const acknowledged: string[] = [];
  for (let run = 0; run < RUNS; run++) acknowledged.push(...(await runAndKill(file, run, 5 + ((run * 37) % 120))));
  expect(acknowledged.length).toBeGreaterThan(RUNS);
  const { log } = auditLogIn(folder);
  await log.open(never);
  await log.close();
  const report = await verifyAuditLog(file, log.head(), never);
  expect(report).toMatchObject({ first: 1n, anchor: undefined, knownMet: true, unfinished: 0, break: undefined });
  expect(report.files).toBeGreaterThan(1);
  const files = (await names(folder)).filter((name) => /^audit(-\d+)?\.log$/.test(name));
  const lines = (await Promise.all(files.map((name) => linesOf(join(folder, name))))).flat();
  const times = new Map<unknown, number>();
  for (const { tag } of lines) times.set(tag, (times.get(tag) ?? 0) + 1);
  expect(acknowledged.filter((tag) => times.get(tag) !== 1)).toEqual([]);
  expect(lines).toHaveLength(report.lines);
});

function canMount(): boolean {
  try {
    execFileSync('unshare', ['--mount', 'sh', '-c', 'mount -t tmpfs tmpfs /mnt'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

test.skipIf(!canMount())(
  'H3: the disk is full (a tmpfs; needs root): not written, a problem, and it goes on when there is space',
  async () => {
    const folder = await tempFolder();
    const script = ['sh', '-c', 'mount -t tmpfs -o size=1m tmpfs "$1" && shift && exec "$@"', 'sh', folder];
    const args = ['--mount', ...script, process.execPath, ...sourceArguments, program('full-disk'), join(folder, 'audit.log')];
    const { written, ...seen } = JSON.parse(execFileSync('unshare', args, { encoding: 'utf8', timeout: 60_000 }));
    expect(written).toBeGreaterThan(100);
    expect(seen).toEqual({
      whileFull: Array(4).fill('audit.not_written'),
      problems: [`${join(folder, 'audit.log')} cannot be written: ENOSPC`],
      after: ['written', 'written'],
      head: written,
      lines: written + 2,
      end: written + 2,
      break: 'none',
      well: true,
    });
  },
);
