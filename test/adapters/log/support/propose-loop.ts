import { writeSync } from 'node:fs';
import { SystemClock } from '../../../../src/adapters/clock/system-clock.js';
import { SqliteOrderedLog } from '../../../../src/adapters/log/sqlite-ordered-log.js';
import { options, setting } from './test-log.js';

/** Proposes until it is killed, 8 at a time, and prints `revision key value` for each that is acknowledged. */
const [file = '', run = ''] = process.argv.slice(2);
const log = new SqliteOrderedLog({ file, clock: new SystemClock() });
await log.open(options);
writeSync(1, 'open\n');
await Promise.all(Array.from({ length: 8 }, (_, lane) => proposeForEver(lane)));

async function proposeForEver(lane: number): Promise<void> {
  for (let i = 0; ; i += 1) {
    const [key, value] = [
      `run/${run}/${lane}/${i % 50}`,
      JSON.stringify(`${run} ${lane} ${i}`.padEnd(20 + ((i * 37) % 3000), '.')),
    ];
    const result = await log.propose(setting(key, value), options);
    if (result.outcome === 'committed') writeSync(1, `${result.revision} ${key} ${value.length}\n`);
  }
}
