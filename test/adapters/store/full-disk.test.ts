import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { sourceArguments } from '../../../src/adapters/threads/typescript-worker.js';
import { tempFolder } from '../../support/temp-folder.js';

const PROGRAM = fileURLToPath(new URL('./support/full-store.ts', import.meta.url));

test('K1: files that cannot grow: commits fail as not written, reads and watches go on, then it recovers by itself', {
  timeout: 90_000,
}, async () => {
  const file = join(await tempFolder(), 'control.db');
  // An ignored signal stays ignored in the program: a write beyond 2 MiB then fails with EFBIG.
  const script = ['-c', 'trap "" XFSZ && ulimit -S -f 4096 && exec "$@"', 'sh'];
  const output = execFileSync('sh', [...script, process.execPath, ...sourceArguments, PROGRAM, file], {
    encoding: 'utf8',
    timeout: 80_000,
  });
  const { count, ...seen } = JSON.parse(output);
  expect(count).toBeGreaterThan(100);
  expect(seen).toEqual({
    ...{ whileFull: ['store.unavailable'], problems: ['control-store'], readable: true },
    ...{ after: ['committed', 'committed', 'committed'], isWell: true, ended: 'store.unavailable' },
    ...{ kept: true, watched: true },
  });
});
