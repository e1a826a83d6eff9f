import { writeSync } from 'node:fs';
import { SystemClock } from '../../../../src/adapters/clock/system-clock.js';
import { SqliteControlStore } from '../../../../src/adapters/store/sqlite-control-store.js';

/** Commits until it is killed, 8 at a time, two keys each, and prints `version key value` for each that is acknowledged. */
const [file = '', run = ''] = process.argv.slice(2);
const options = { signal: new AbortController().signal };
const store = new SqliteControlStore({ file, clock: new SystemClock() });
await store.open(options);
await Promise.all(Array.from({ length: 8 }, (_, lane) => commitForEver(lane)));

async function commitForEver(lane: number): Promise<void> {
  for (let i = 0; ; i += 1) {
    const [key, value] = [`k/${run}/${lane}/${i}`, `${i} ${'v'.repeat((i * 97) % 3_000)}`];
    const writes = [
      { key, value },
      { key: `twin/${run}/${lane}`, value: key },
    ];
    const version = await store.commit([{ key, version: 0n }], writes, options);
    writeSync(1, `${version} ${key} ${value.length}\n`);
  }
}
