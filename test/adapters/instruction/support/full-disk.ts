import { rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SystemClock } from '../../../../src/adapters/clock/system-clock.js';
import { SqliteJournal } from '../../../../src/adapters/instruction/sqlite-journal.js';
import type { Tag } from '../../../../src/domain/instruction/model.js';
import { finishedRow, type Row, receivedRow, startedRow } from '../../../../src/domain/instruction/row.js';
import { AgentError } from '../../../../src/domain/kernel/errors.js';

/** Fills a disk of 2 MiB with instructions, looks at what still goes, and prints what it saw as JSON. */
const [file = ''] = process.argv.slice(2);
const options = { signal: new AbortController().signal };
const filler = join(dirname(file), 'filler');
writeFileSync(filler, Buffer.alloc(256 * 1024));
const journal = new SqliteJournal({ file, clock: new SystemClock(), reserveBytes: 512 * 1024 });
await journal.open(options);

const row = (number: number): Row =>
  receivedRow({
    ...{
      fleet: 'f',
      tag: `t${number}` as Tag,
      type: 'RUN_REMOTE_SCRIPT',
      digest: 'd',
      payloadDigest: 'p',
      lanes: [],
      repeat: 'never',
    },
    ...{ who: 'w'.repeat(3_000), epoch: undefined, receivedAt: 1, expiresAt: undefined, waiterMs: 1, boot: 'b', task: undefined },
    background: false,
  });

async function commit(change: Row): Promise<string> {
  try {
    await journal.commit([{ change: 'row', row: change }], options);
    return 'committed';
  } catch (error) {
    return error instanceof AgentError ? error.code : String(error);
  }
}

let taken = 0;
while ((await commit(row(taken))) === 'committed') taken += 1;
const ends = [];
for (let number = 0; number < 10; number += 1) ends.push(await commit(finishedRow(startedRow(row(number)), 'done', 2)));
const whileFull = await commit(row(taken));
const problems = journal.problems().map(({ subject }) => subject);
const [found] = await journal.find([row(0)], options);
rmSync(filler);
await new Promise((resolve) => setTimeout(resolve, 10_500));
const after = await commit(row(taken));
const healed = journal.problems().length;
process.stdout.write(JSON.stringify({ taken, ends, whileFull, problems, state: found?.row.state, after, healed }));
await journal.close();
