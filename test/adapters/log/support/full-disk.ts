import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SystemClock } from '../../../../src/adapters/clock/system-clock.js';
import { SqliteOrderedLog } from '../../../../src/adapters/log/sqlite-ordered-log.js';
import { AgentError } from '../../../../src/domain/kernel/errors.js';
import type { ProposeResult } from '../../../../src/domain/log/model.js';
import { content, entriesFrom, options, setting, start } from './test-log.js';

/** Fills the disk (or meets the limit of file sizes), looks at what still goes, makes space, and prints what it saw as JSON. */
const [file = '', way = ''] = process.argv.slice(2);
const filler = join(dirname(file), 'filler');
if (way === 'tmpfs') writeFileSync(filler, Buffer.alloc(256 * 1024));
const log = new SqliteOrderedLog({ file, clock: new SystemClock() });
await log.open(options);

let number = 0;
async function propose(): Promise<ProposeResult['outcome'] | string> {
  number += 1;
  const value = JSON.stringify(`${number} ${'v'.repeat(4_000)}`);
  try {
    return (await log.propose(setting(`k/${number % 20}`, value), options)).outcome;
  } catch (error) {
    return error instanceof AgentError ? error.code : String(error);
  }
}

const watcher = log.watch(await start(log), options)[Symbol.asyncIterator]();
let outcome = await propose();
while (outcome === 'committed') outcome = await propose();
const full = await log.head(options);
const whileFull = [outcome, ...(await Promise.all(Array.from({ length: 10 }, propose))), await propose()];
const head = await log.head(options);
const read = (await entriesFrom(log, await start(log))).length;
const watched = (await watcher.next()).value;
const { items } = await log.snapshot('', options);

if (way === 'tmpfs') rmSync(filler);
else execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=unlimited:']);
const after = [await propose(), await propose(), await propose()];
const before = await content(log);
await log.close();

const again = new SqliteOrderedLog({ file, clock: new SystemClock() });
await again.open(options);
const same = text(await content(again)) === text(before);
const end = await again.head(options);
await again.close();
const revisions = { full: full.revision, head: head.revision, end: end.revision };
process.stdout.write(text({ ...revisions, read, watched: watched?.kind, keys: items.length, whileFull, after, same }));

function text(value: unknown): string {
  return JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? Number(each) : each));
}
