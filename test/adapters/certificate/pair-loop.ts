import { writeSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { FilePairStore } from '../../../src/adapters/certificate/file-pair-store.js';
import type { Pair } from '../../../src/ports/certificate/pair-store.js';

/** Renews until it is killed: keeps and uses one pair of the file after the other, and prints each serial that is in use. */
const [folder = '', source = ''] = process.argv.slice(2);
const options = { signal: new AbortController().signal };
const pairs = JSON.parse(await readFile(source, 'utf8')) as readonly Pair[];
const flat = { certificate: `${folder}/mtls.crt`, privateKey: `${folder}/mtls.key`, ca: `${folder}/ca.crt` };
const store = new FilePairStore({ folder: `${folder}/certs`, flat });
await store.load(options);
writeSync(1, 'open\n');
for (let i = 0; ; i = (i + 1) % pairs.length) {
  const pair = pairs[i];
  if (pair === undefined) throw new Error('no pairs');
  const { serial } = await store.stage(pair, options);
  await store.activate(serial, options);
  writeSync(1, `${serial}\n`);
}
