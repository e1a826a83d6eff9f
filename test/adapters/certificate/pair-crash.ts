import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import type { Pair } from '../../../src/ports/certificate/pair-store.js';

/** Keeps and uses one pair, and is killed before the system call that changes something for the n-th time; ends by itself when there are fewer. */
const [folder = '', source = '', step = ''] = process.argv.slice(2);
const signal = new AbortController().signal;
const pair = JSON.parse(await fs.readFile(source, 'utf8')) as Pair;
let left = Number(step);

function dying<Arguments extends unknown[], T>(work: (...args: Arguments) => T): (...args: Arguments) => T {
  return function (this: unknown, ...args: Arguments): T {
    left -= 1;
    if (left <= 0) process.kill(process.pid, 'SIGKILL');
    return work.apply(this, args);
  };
}

const file = await fs.open(source, 'r');
const handle = Object.getPrototypeOf(file);
await file.close();
Object.assign(handle, { writeFile: dying(handle.writeFile), sync: dying(handle.sync), chmod: dying(handle.chmod) });
const { mkdir, rename, symlink, rm, unlink, open } = fs;
Object.assign(fs, {
  mkdir: dying(mkdir),
  rename: dying(rename),
  symlink: dying(symlink),
  rm: dying(rm),
  unlink: dying(unlink),
  open: dying(open),
});
syncBuiltinESMExports();

// Only now: what it imports by name are the calls above.
const { FilePairStore } = await import('../../../src/adapters/certificate/file-pair-store.js');
const flat = { certificate: `${folder}/mtls.crt`, privateKey: `${folder}/mtls.key`, ca: `${folder}/ca.crt` };
const store = new FilePairStore({ folder: `${folder}/certs`, flat });
const { serial } = await store.stage(pair, { signal });
await store.activate(serial, { signal });
