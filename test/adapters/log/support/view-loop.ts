import { writeSync } from 'node:fs';
import { SqliteViewStore } from '../../../../src/adapters/log/sqlite-view-store.js';
import { type Cursor, digest, logId, logKey, revision } from '../../../../src/domain/log/model.js';

/** Appends until it is killed, and prints each revision that is stored. Every batch writes its revision to every key. */
const [file = ''] = process.argv.slice(2);
const options = { signal: new AbortController().signal };
const keys = Array.from({ length: 20 }, (_, i) => logKey(`k/${i}`));
const cursorAt = (number: number): Cursor => ({
  ...{ logId: logId('log'), revision: revision(BigInt(number)) },
  digest: digest(number.toString(16).padStart(64, '0')),
});
const content = (number: number) =>
  keys.map((key) => ({ key, value: `"${number} ${'v'.repeat((number * 37) % 3_000)}"`, revision: revision(BigInt(number)) }));

const store = new SqliteViewStore(file);
const { view, dropped } = await store.open({ fleet: 'f', nid: 'n', registration: 'r' }, options);
let at = Number(view?.cursor.revision ?? 0n);
// Whole, or the killed one was: every key is of the cursor's revision.
const whole = view === undefined || view.items.every((item) => item.revision === view.cursor.revision);
writeSync(1, `open ${at} ${whole && (view === undefined || view.items.length === keys.length)} ${dropped ?? '-'}\n`);
if (view === undefined) await store.replace({ cursor: cursorAt(at), time: 0, currentAt: 0, items: content(at) }, options);
for (;;) {
  const stored = await store.append(
    { previous: cursorAt(at), cursor: cursorAt(at + 1), time: 0, currentAt: 0, changes: content(at + 1) },
    options,
  );
  if (!stored) throw new Error(`${at} is not stored`);
  at += 1;
  writeSync(1, `${at}\n`);
}
