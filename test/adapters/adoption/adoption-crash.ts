import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

/** Adopts or undoes below a root, and is killed before the system call that changes something for the n-th time; ends by itself when there are fewer. */
const [root = '', verb = '', step = ''] = process.argv.slice(2);
let left = Number(step);

function dying<Arguments extends unknown[], T>(work: (...args: Arguments) => T): (...args: Arguments) => T {
  return function (this: unknown, ...args: Arguments): T {
    left -= 1;
    if (left <= 0) process.kill(process.pid, 'SIGKILL');
    return work.apply(this, args);
  };
}

const file = await fs.open(process.execPath, 'r');
const handle = Object.getPrototypeOf(file);
await file.close();
Object.assign(handle, { writeFile: dying(handle.writeFile), sync: dying(handle.sync) });
const { mkdir, rename, symlink, rm, rmdir, unlink } = fs;
Object.assign(fs, {
  mkdir: dying(mkdir),
  rename: dying(rename),
  symlink: dying(symlink),
  rm: dying(rm),
  rmdir: dying(rmdir),
  unlink: dying(unlink),
});
syncBuiltinESMExports();

// Only now: what it imports by name are the calls above. The compiled one, as generated sources hold what Node cannot run as it is.
const { adopt } = await import(new URL('../../../dist/composition/adopt.js', import.meta.url).href);
const silent = { out: () => {}, err: () => {}, colour: false, interactive: false };
const context = { console: silent, env: {}, stdin: process.stdin, signal: new AbortController().signal };
const options = { dataDir: '/data', root, undo: verb === 'undo', dryRun: false, yes: true, output: 'json' } as const;
process.exitCode = await adopt(context, options);
// What was replaced above is not waited for: a stdin that is open would be.
process.exit();
