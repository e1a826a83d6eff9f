import { join } from 'node:path';
import { FileIdentityStore } from '../../../src/adapters/identity/file-identity-store.js';
import { ensureIdentity } from '../../../src/app/agent/ensure-identity.js';

// mint-child.ts FOLDER NAME [COUNT]: gives NAME to COUNT nodes, FOLDER/0, FOLDER/1, …, and prints who each is.
const [folder = '', explicitName = '', count = '1'] = process.argv.slice(2);
const { signal } = new AbortController();
const labels = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`label-${index}`, 'x'.repeat(60)]));
for (let node = 0; node < Number(count); node++) {
  const store = new FileIdentityStore(join(folder, String(node), 'node-identity.json'));
  const facts = { explicitName, hostname: 'host', labels, randomBytes: new Uint8Array(8) };
  process.stdout.write(`${(await ensureIdentity(store, facts, { signal })).nodeId}\n`);
}
