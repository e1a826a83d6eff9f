import { type ChildProcess, spawn } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { FilePairStore } from '../../../src/adapters/certificate/file-pair-store.js';
import { checkedPair } from '../../../src/adapters/certificate/pair-reader.js';
import { sourceArguments } from '../../../src/adapters/threads/typescript-worker.js';
import type { Pair } from '../../../src/ports/certificate/pair-store.js';
import { pairStoreContract } from '../../contract/pair-store.contract.js';
import { fakeKey, formatFakeCertificate, provenOf } from '../../fakes/fake-certificates.js';
import { FakePairStore } from '../../fakes/fake-pair-store.js';
import { tempFolder } from '../../support/temp-folder.js';
import { DAY, lasting, MINUTE, newAuthority, newPair, node, options } from './support.js';

let pairs: readonly Pair[] = [];

beforeAll(async () => {
  const authority = await newAuthority();
  const hoursAgo = [4, 3, 2, 1];
  pairs = await Promise.all(hoursAgo.map((hours) => newPair(authority, node, lasting(-hours * 60 * MINUTE, 90 * DAY))));
});

const fakePair = (serial: string, notBefore: number): Pair => ({
  certificate: formatFakeCertificate({
    issuer: 'r',
    serial,
    fingerprint: provenOf(serial).fingerprint,
    notBefore,
    notAfter: 100,
  }),
  privateKey: fakeKey(serial),
  ca: formatFakeCertificate({ issuer: 'r', serial: 'r', fingerprint: '', notBefore: 0, notAfter: 100 }),
});

pairStoreContract(
  'fake',
  async () => {
    const store = new FakePairStore();
    return { store, damage: async (serial) => store.damage(serial) };
  },
  async () => ['aa', 'bb', 'cc', 'dd'].map((serial, i) => fakePair(serial, i)),
);

const filesIn = (folder: string) => ({
  certificate: join(folder, 'mtls.crt'),
  privateKey: join(folder, 'mtls.key'),
  ca: join(folder, 'ca.crt'),
});
const storeIn = (folder: string) => new FilePairStore({ folder: join(folder, 'certs'), flat: filesIn(folder) });

pairStoreContract(
  'files',
  async () => {
    const folder = await tempFolder();
    return { store: storeIn(folder), damage: (serial) => writeFile(join(folder, 'certs', serial, 'key'), 'x') };
  },
  async () => pairs,
);

async function used(folder: string, ...list: readonly (Pair | undefined)[]): Promise<FilePairStore> {
  const store = storeIn(folder);
  for (const pair of list) {
    if (pair === undefined) throw new Error('no pair');
    await store.activate((await store.stage(pair, options)).serial, options);
  }
  return store;
}

async function flatPair(folder: string): Promise<Pair> {
  const { certificate, privateKey, ca } = filesIn(folder);
  return {
    certificate: await readFile(certificate, 'utf8'),
    privateKey: await readFile(privateKey, 'utf8'),
    ca: await readFile(ca, 'utf8'),
  };
}

describe('F6: on disk', () => {
  test('each pair has a folder, a link leads to the one in use, and keys are private', async () => {
    const folder = await tempFolder();
    await used(folder, pairs[0], pairs[1]);
    const [first, second] = pairs.map(checkedPair);
    const names = (await readdir(join(folder, 'certs'))).sort();
    expect(names).toEqual([first?.serial, second?.serial, 'current'].sort());
    expect((await readdir(join(folder, 'certs/current'))).sort()).toEqual(['ca', 'crt', 'key']);
    expect((await stat(join(folder, 'certs/current/key'))).mode & 0o777).toBe(0o600);
    expect((await stat(join(folder, 'certs/current/crt'))).mode & 0o777).toBe(0o644);
    expect((await stat(join(folder, 'certs'))).mode & 0o777).toBe(0o700);
  });

  test('the files of the compatibility paths are those of the one in use', async () => {
    const folder = await tempFolder();
    await used(folder, pairs[0], pairs[1]);
    expect(await flatPair(folder)).toEqual(pairs[1]);
    const mode = async (path: string) => (await stat(path)).mode & 0o777;
    expect(await mode(filesIn(folder).ca)).toBe(0o644);
    expect(await mode(filesIn(folder).certificate)).toBe(0o644);
    expect(await mode(filesIn(folder).privateKey)).toBe(0o600);
  });

  test('they are mended at the next load, when a crash or somebody has mixed them', async () => {
    const folder = await tempFolder();
    await used(folder, pairs[0], pairs[1]);
    await writeFile(filesIn(folder).certificate, pairs[0]?.certificate ?? '');
    await rm(filesIn(folder).ca);
    await storeIn(folder).load(options);
    expect(await flatPair(folder)).toEqual(pairs[1]);
  });

  test('where they cannot be written the pair is used all the same, and it is reported', async () => {
    const folder = await tempFolder();
    await used(folder, pairs[0]);
    await rm(filesIn(folder).ca);
    await mkdir(filesIn(folder).ca);
    const store = storeIn(folder);
    expect((await store.load(options)).current).toMatchObject(pairs[0] ?? {});
    expect(store.problems()).toMatchObject([{ reason: expect.stringContaining(`${filesIn(folder).ca} cannot be written`) }]);
  });

  test('also where they cannot be written from the first: the pair is in use, and it is reported', async () => {
    const folder = await tempFolder();
    await mkdir(filesIn(folder).certificate);
    const store = await used(folder, pairs[0]);
    expect(store.problems()).toMatchObject([{ reason: expect.stringContaining('mtls.crt cannot be written') }]);
    expect((await store.load(options)).current).toMatchObject(pairs[0] ?? {});
  });

  test('a folder that cannot be read is named', async () => {
    const folder = await tempFolder();
    await writeFile(join(folder, 'certs'), '');
    await expect(storeIn(folder).load(options)).rejects.toMatchObject({
      code: 'certificate.unusable',
      facts: { problem: `${join(folder, 'certs')} cannot be read: ENOTDIR` },
    });
  });

  test('a private key that others may read is made private', async () => {
    const folder = await tempFolder();
    await used(folder, pairs[0]);
    await chmod(join(folder, 'certs/current/key'), 0o644);
    await storeIn(folder).load(options);
    expect((await stat(join(folder, 'certs/current/key'))).mode & 0o777).toBe(0o600);
  });

  test.each<{ name: string; spoil: (folder: string) => Promise<unknown>; reason: RegExp }>([
    { name: 'without its key', spoil: (at) => rm(join(at, 'key')), reason: /key is not there/ },
    { name: 'with an empty certificate', spoil: (at) => writeFile(join(at, 'crt'), ''), reason: /no certificate in PEM/ },
    {
      name: 'with the key of another',
      spoil: async (at) => writeFile(join(at, 'key'), pairs[3]?.privateKey ?? ''),
      reason: /do not belong together/,
    },
    { name: 'with a web page as its root', spoil: (at) => writeFile(join(at, 'ca'), '<html>'), reason: /root is no certificate/ },
    {
      name: 'that is another pair',
      spoil: async (at) => {
        await writeFile(join(at, 'crt'), pairs[3]?.certificate ?? '');
        await writeFile(join(at, 'key'), pairs[3]?.privateKey ?? '');
      },
      reason: /holds another certificate/,
    },
  ])('a pair $name is named, and the one before is used', async ({ spoil, reason }) => {
    const folder = await tempFolder();
    await used(folder, pairs[0], pairs[1]);
    await spoil(join(folder, 'certs', checkedPair(pairs[1] ?? { certificate: '', privateKey: '', ca: '' }).serial));
    const store = storeIn(folder);
    expect((await store.load(options)).current).toMatchObject(pairs[0] ?? {});
    expect(store.problems().map((problem) => problem.reason)).toEqual(
      expect.arrayContaining([expect.stringMatching(reason), expect.stringMatching(/leads to no whole pair/)]),
    );
    expect(JSON.stringify(store.problems())).not.toContain('PRIVATE KEY');
  });

  test('a link that leads nowhere is no end', async () => {
    const folder = await tempFolder();
    await used(folder, pairs[0]);
    await rm(join(folder, 'certs/current'));
    await symlink('gone', join(folder, 'certs/current'));
    expect((await storeIn(folder).load(options)).current).toMatchObject(pairs[0] ?? {});
  });

  test('what cannot be written is refused, and the pair in use stays', async () => {
    const folder = await tempFolder();
    await writeFile(join(folder, 'certs'), '');
    await expect(storeIn(folder).stage(pairs[0] ?? { certificate: '', privateKey: '', ca: '' }, options)).rejects.toMatchObject({
      code: 'certificate.not_written',
    });
  });
});

describe('the pair of an older agent', () => {
  async function legacy(pair: Pair | undefined): Promise<string> {
    const folder = await tempFolder();
    await writeFile(filesIn(folder).certificate, pair?.certificate ?? '');
    await writeFile(filesIn(folder).privateKey, pair?.privateKey ?? '', { mode: 0o644 });
    await writeFile(filesIn(folder).ca, pair?.ca ?? '');
    return folder;
  }

  test('is used as it is, and its key is made private', async () => {
    const folder = await legacy(pairs[0]);
    expect((await storeIn(folder).load(options)).current).toMatchObject(pairs[0] ?? {});
    expect((await stat(filesIn(folder).privateKey)).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).not.toContain('certs');
  });

  test('is the way back from the first renewal', async () => {
    const folder = await legacy(pairs[0]);
    await used(folder, pairs[1]);
    await rm(join(folder, 'certs/current/key'));
    expect((await storeIn(folder).load(options)).current).toMatchObject(pairs[0] ?? {});
  });

  test('is in use until the next one is', async () => {
    const folder = await legacy(pairs[0]);
    const staged = await storeIn(folder).stage(pairs[1] ?? { certificate: '', privateKey: '', ca: '' }, options);
    expect(await storeIn(folder).load(options)).toMatchObject({ current: pairs[0] ?? {}, staged });
    expect(await flatPair(folder)).toEqual(pairs[0]);
  });

  test('that does not belong together is no pair, and named', async () => {
    const folder = await legacy({ ...(pairs[0] ?? { certificate: '', ca: '' }), privateKey: pairs[1]?.privateKey ?? '' });
    const store = storeIn(folder);
    expect(await store.load(options)).toEqual({ current: undefined, staged: undefined });
    expect(store.problems()).toMatchObject([{ reason: 'certificate and private key do not belong together' }]);
  });
});

describe('forms of keys', () => {
  test.each(['pkcs8', 'sec1'] as const)('EC as %s', async (type) => {
    const pair = pairs[0] ?? { certificate: '', privateKey: '', ca: '' };
    const privateKey = String(createPrivateKey(pair.privateKey).export({ type, format: 'pem' }));
    const store = await used(await tempFolder(), { ...pair, privateKey });
    expect((await store.load(options)).current?.privateKey).toBe(privateKey);
  });

  test.each(['pkcs1', 'pkcs8'] as const)('RSA as %s', async (type) => {
    const authority = await newAuthority();
    const made = await authority.makeKey(options);
    const request = { identity: node, key: made.key, serial: '41000000000000000000000000000000', ...lasting(-MINUTE, DAY) };
    const certificate = await authority.issue(request, options);
    const privateKey = String(createPrivateKey(made.privateKey).export({ type, format: 'pem' }));
    const store = await used(await tempFolder(), { certificate, privateKey, ca: authority.root });
    expect((await store.load(options)).current).toMatchObject({ privateKey, serial: request.serial });
  });
});

const program = fileURLToPath(new URL('./pair-loop.ts', import.meta.url));
const RUNS = 12;

/** Kills the renewing program `delay` ms after its first pair, and gives the serials that it had said were in use. */
async function runAndKill(folder: string, source: string, delay: number): Promise<readonly string[]> {
  const child: ChildProcess = spawn(process.execPath, [...sourceArguments, program, folder, source], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const said: string[] = [];
  if (child.stdout === null) throw new Error('no output');
  for await (const line of createInterface(child.stdout)) {
    if (line === 'open') continue;
    if (said.length === 0) setTimeout(() => child.kill('SIGKILL'), delay);
    if (/^[0-9a-f]{32}$/.test(line)) said.push(line);
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  expect(child.signalCode).toBe('SIGKILL');
  return said;
}

test(`F6: kill -9 at any step, ${RUNS} times: a pair that works is there, and its files match`, {
  timeout: 180_000,
}, async () => {
  const folder = await tempFolder();
  const source = join(folder, 'pairs.json');
  await writeFile(source, JSON.stringify(pairs));
  const order = pairs.map((pair) => checkedPair(pair).serial);
  for (let run = 0; run < RUNS; run += 1) {
    const said = await runAndKill(folder, source, (run * 7.3) % 40);
    const last = order.indexOf(said.at(-1) ?? '');
    const store = storeIn(folder);
    const { current } = await store.load(options);
    // What was said to be in use is, or the one after it.
    expect([order[last], order[(last + 1) % order.length]]).toContain(current?.serial);
    expect(store.problems()).toEqual([]);
    expect(await flatPair(folder)).toEqual({
      certificate: current?.certificate,
      privateKey: current?.privateKey,
      ca: current?.ca,
    });
  }
  const store = await used(folder, pairs[0], pairs[1]);
  expect(await store.load(options)).toMatchObject({ current: pairs[1] ?? {} });
  expect((await readdir(join(folder, 'certs'))).filter((name) => name.startsWith('.'))).toEqual([]);
});

const crashing = fileURLToPath(new URL('./pair-crash.ts', import.meta.url));

/** Whether the program was killed before the n-th change, and not at its end by then. */
async function crashAt(step: number, folder: string, source: string): Promise<boolean> {
  const child = spawn(process.execPath, [...sourceArguments, crashing, folder, source, String(step)], { stdio: 'inherit' });
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  if (signal === null) expect(code).toBe(0);
  return signal === 'SIGKILL';
}

test('F6: killed before each single step: one of both pairs is in use, whole, and renewal goes on', {
  timeout: 180_000,
}, async () => {
  const source = join(await tempFolder(), 'pair.json');
  await writeFile(source, JSON.stringify(pairs[1]));
  const seen = new Set<string>();
  let step = 1;
  for (; ; step += 1) {
    const folder = await tempFolder();
    await used(folder, pairs[0]);
    if (!(await crashAt(step, folder, source))) break;
    const store = storeIn(folder);
    const { current, staged } = await store.load(options);
    const which = pairs.findIndex(({ certificate }) => certificate === current?.certificate);
    expect([0, 1]).toContain(which);
    seen.add(`${which} ${staged === undefined ? 'alone' : 'and another'}`);
    expect(store.problems()).toEqual([]);
    expect(await flatPair(folder)).toEqual(pairs[which]);
    await used(folder, pairs[1]);
    expect((await storeIn(folder).load(options)).current).toMatchObject(pairs[1] ?? {});
    expect((await readdir(join(folder, 'certs'))).filter((name) => name.startsWith('.'))).toEqual([]);
  }
  expect([...seen].sort()).toEqual(['0 alone', '0 and another', '1 alone']);
  // Three files and two folders of the pair, the link, and three flat files, each written, synced and put in place.
  expect(step).toBeGreaterThan(25);
});
