import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { sourceArguments } from '../../../src/adapters/threads/typescript-worker.js';
import { inFolder } from './support/test-log.js';

const PROGRAM = fileURLToPath(new URL('./support/full-disk.ts', import.meta.url));

/** Runs the program after `prepare`, in a shell in which `$1` is the log's folder. */
function run(prepare: string, folder: string, way: string, wrapper: readonly string[] = []): Seen {
  const script = ['sh', '-c', `${prepare} && shift && exec "$@"`, 'sh', folder];
  const program = [process.execPath, ...sourceArguments, PROGRAM, join(folder, 'log.db'), way];
  const [command = '', ...rest] = [...wrapper, ...script, ...program];
  return JSON.parse(execFileSync(command, rest, { encoding: 'utf8', timeout: 60_000 }));
}

function canMount(): boolean {
  try {
    execFileSync('unshare', ['--mount', 'sh', '-c', 'mount -t tmpfs tmpfs /mnt'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

interface Seen {
  readonly full: number;
  readonly whileFull: readonly string[];
}

/** `written` of the 12 proposals after the first failure found space all the same. */
function expectServed({ full, whileFull, ...seen }: Seen, written: number): void {
  expect(full).toBeGreaterThan(20);
  expect(whileFull[0]).toBe('log.not_written');
  expect(whileFull.filter((outcome) => outcome === 'log.not_written')).toHaveLength(12 - written);
  expect(seen).toEqual({
    head: full + written,
    read: full + written,
    watched: 'entry',
    keys: 20,
    after: ['committed', 'committed', 'committed'],
    end: full + written + 3,
    same: true,
  });
}

test('the largest file size is reached: proposals fail as not written, reads go on, then it recovers by itself', () =>
  inFolder(async (folder) => {
    // An ignored signal stays ignored in the program: a write then fails with EFBIG. The WAL is what grows to 2 MiB; it is folded in
    // and begins anew when the file is reopened, so that only the first proposal fails.
    const seen = run("trap '' XFSZ && ulimit -S -f 4096", folder, 'limit');
    expectServed(seen, 11);
  }));

test.skipIf(!canMount())('the disk is full (a tmpfs; needs root): the same', () =>
  inFolder(async (folder) => {
    expectServed(run('mount -t tmpfs -o size=2m tmpfs "$1"', folder, 'tmpfs', ['unshare', '--mount']), 0);
  }),
);
