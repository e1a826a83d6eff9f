import { execFileSync } from 'node:child_process';
import { SystemClock } from '../../../../src/adapters/clock/system-clock.js';
import { SqliteControlStore } from '../../../../src/adapters/store/sqlite-control-store.js';
import { AgentError } from '../../../../src/domain/kernel/errors.js';

/** Writes until its files may not grow any more, looks at what still goes, lets them grow again, and prints what it saw as JSON. */
const [file = ''] = process.argv.slice(2);
const options = { signal: new AbortController().signal };
const store = new SqliteControlStore({ file, clock: new SystemClock() });
await store.open(options);

const acknowledged: string[] = [];
let number = 0;
async function commit(): Promise<string> {
  const key = `k/${number++}`;
  try {
    await store.commit([{ key, version: 0n }], [{ key, value: 'v'.repeat(4_000) }], options);
    acknowledged.push(key);
    return 'committed';
  } catch (error) {
    return error instanceof AgentError ? error.code : String(error);
  }
}

const watched: string[] = [];
const watch = (async () => {
  for await (const changes of store.watch('k/', options)) watched.push(...changes.map(({ key }) => key));
})().catch((error: unknown) => (error instanceof AgentError ? error.code : String(error)));

const whileFull: string[] = [];
while (whileFull.length < 20 && number < 20_000) {
  const outcome = await commit();
  if (outcome !== 'committed') whileFull.push(outcome);
}
const problems = store.problems().map(({ subject }) => subject);
const readable = (await store.list('k/', options)).length === acknowledged.length;
execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=unlimited:']);
const after = [await commit(), await commit(), await commit()];
const isWell = store.problems().length === 0;
await store.close();
const ended = await watch;

const again = new SqliteControlStore({ file, clock: new SystemClock() });
await again.open(options);
const kept = (await again.list('k/', options)).map(({ key }) => key).sort();
await again.close();
const same = (keys: readonly string[]) => JSON.stringify([...keys].sort()) === JSON.stringify(kept);
const seen = { whileFull: [...new Set(whileFull)], problems, readable, after, isWell, ended };
process.stdout.write(JSON.stringify({ ...seen, count: acknowledged.length, kept: same(acknowledged), watched: same(watched) }));
