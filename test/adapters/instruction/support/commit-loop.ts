import { writeSync } from 'node:fs';
import { SystemClock } from '../../../../src/adapters/clock/system-clock.js';
import { SqliteJournal } from '../../../../src/adapters/instruction/sqlite-journal.js';
import type { Tag } from '../../../../src/domain/instruction/model.js';
import { finishedRow, receivedRow, startedRow } from '../../../../src/domain/instruction/row.js';

/** Takes instructions through their three commits until it is killed, 8 at a time, and prints `tag state` for each that is durable. */
const [file = '', run = ''] = process.argv.slice(2);
const options = { signal: new AbortController().signal };
const journal = new SqliteJournal({ file, clock: new SystemClock(), reserveBytes: 4_096 });
await journal.open(options);
writeSync(1, 'open\n');
await Promise.all(Array.from({ length: 8 }, (_, lane) => goOn(lane)));

async function goOn(lane: number): Promise<void> {
  for (let i = 0; ; i += 1) {
    const tag = `${run}-${lane}-${i}` as Tag;
    const received = receivedRow({
      ...{ fleet: 'f', tag, type: 'RUN_REMOTE_SCRIPT', digest: 'd', payloadDigest: 'p', who: 'w', lanes: [], repeat: 'never' },
      ...{ epoch: undefined, receivedAt: 1, expiresAt: undefined, waiterMs: 1, boot: 'b', task: undefined, background: false },
    });
    const started = startedRow(received);
    const finished = finishedRow(started, 'done', 2);
    await journal.commit([{ change: 'row', row: received }], options);
    writeSync(1, `${tag} received\n`);
    await journal.commit([{ change: 'row', row: started }], options);
    writeSync(1, `${tag} started\n`);
    const jsonB64 = 'x'.repeat((i * 977) % 20_000);
    await journal.commit(
      [
        { change: 'row', row: finished },
        { change: 'reply', key: { fleet: 'f', tag }, reply: { type: 'T', jsonB64 } },
      ],
      options,
    );
    writeSync(1, `${tag} finished\n`);
  }
}
