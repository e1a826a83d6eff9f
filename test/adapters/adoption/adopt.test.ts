import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { FilePairStore } from '../../../src/adapters/certificate/file-pair-store.js';
import { sourceArguments } from '../../../src/adapters/threads/typescript-worker.js';
import type { Pair } from '../../../src/ports/certificate/pair-store.js';
import { legacyMachine } from '../../support/legacy-machine.js';
import { tempFolder } from '../../support/temp-folder.js';
import { ThrowawayPki } from '../../support/throwaway-pki.js';

const holdfast = join(import.meta.dirname, '../../../bin/holdfast');
const options = { signal: new AbortController().signal };
let pki: ThrowawayPki;
let renewed: Pair;

beforeAll(() => {
  pki = new ThrowawayPki();
  renewed = { ...pki.issue({ name: 'n-1', organization: 'acme' }), ca: pki.root };
});
afterAll(() => pki.remove());

function start(root: string, ...args: readonly string[]): ChildProcess {
  const child = spawn(holdfast, ['adopt', '--root', root, '--data-dir', '/data', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

async function run(root: string, ...args: readonly string[]) {
  const child = start(root, ...args);
  const said = { out: '', err: '' };
  child.stdout?.on('data', (chunk: Buffer) => {
    said.out += chunk.toString();
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    said.err += chunk.toString();
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...said };
}

const wish = { nid: 'n-1', aid: 'acme', server: 'control' };

/** A machine of its own with an older agent that does not run. */
async function machine() {
  const root = await tempFolder();
  return { root, legacy: await legacyMachine(root, pki, wish) };
}

const storeIn = (root: string) =>
  new FilePairStore({
    folder: join(root, 'data/certs'),
    flat: {
      ca: join(root, 'data/certs/ca.crt'),
      certificate: join(root, 'data/certs/mtls.crt'),
      privateKey: join(root, 'data/certs/mtls.key'),
    },
  });

async function renew(root: string): Promise<void> {
  const store = storeIn(root);
  const { serial } = await store.stage(renewed, options);
  await store.activate(serial, options);
}

/** Every file of ours below the root, but for the lock and what the link of the current pair shows once more. */
async function ours(root: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const folder of ['data', 'etc/holdfast']) {
    const inside = await readdir(join(root, folder), { recursive: true }).catch(() => undefined);
    if (inside !== undefined) found.push(folder, ...inside.map((path) => `${folder}/${path}`));
  }
  return found.filter((path) => path !== 'data/lock' && !path.includes('/current/')).sort();
}

const nothingOfOurs = ['data'];
const afterAdoption = (serial: string) => [
  'data',
  'data/adoption.json',
  'data/certs',
  `data/certs/${serial}`,
  `data/certs/${serial}/ca`,
  `data/certs/${serial}/crt`,
  `data/certs/${serial}/key`,
  'data/certs/ca.crt',
  'data/certs/current',
  'data/certs/mtls.crt',
  'data/certs/mtls.key',
  'data/enrolment.json',
  'data/registration-ca.crt',
  'etc/holdfast',
  'etc/holdfast/config.yaml',
];

async function serialIn(root: string): Promise<string> {
  return (await storeIn(root).load(options)).current?.serial ?? 'none';
}

describe('holdfast adopt', () => {
  test('a dry run says what would be done and changes nothing', async () => {
    const { root, legacy } = await machine();
    const before = await legacy.read();
    const { code, out } = await run(root, '--dry-run');
    expect({ code, out }).toEqual({
      code: 0,
      out: expect.stringMatching(/^would adopt node n-1 of acme\n {2}control +control:9192\n/),
    });
    expect(await ours(root)).toEqual([]);
    expect(await legacy.read()).toEqual(before);
  });

  test('takes over what the older agent has and leaves that as it is; again, and --undo, and again', async () => {
    const { root, legacy } = await machine();
    const before = await legacy.read();
    const first = await run(root, '--yes', '-o', 'json');
    expect(first.code).toBe(0);
    const serial = await serialIn(root);
    expect(JSON.parse(first.out)).toMatchObject({ adopted: true, nid: 'n-1', aid: 'acme', server: 'control:9192', serial });
    expect(await ours(root)).toEqual(afterAdoption(serial));
    expect((await stat(join(root, 'etc/holdfast/config.yaml'))).mode & 0o777).toBe(0o600);
    expect(await readFile(join(root, 'etc/holdfast/config.yaml'), 'utf8')).toMatch(/^# Made .*\nnode: {"ip":"10.0.0.7"}\n$/);
    expect(await run(root, '--yes')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^node n-1 of acme is adopted already/),
    });
    expect(await legacy.read()).toEqual(before);
    expect(await run(root, '--undo', '--yes')).toMatchObject({
      code: 0,
      out: 'gave node n-1 back; the older agent can be started\n',
    });
    expect(await ours(root)).toEqual(nothingOfOurs);
    expect(await legacy.read()).toEqual(before);
    expect(await run(root, '--undo', '--yes')).toMatchObject({ code: 0, out: 'nothing was adopted\n' });
    expect(await run(root, '--yes')).toMatchObject({ code: 0 });
    expect(await ours(root)).toEqual(afterAdoption(serial));
  }, 60_000);

  test('a renewed pair is given back, with the modes of its files', async () => {
    const { root, legacy } = await machine();
    await run(root, '--yes');
    await renew(root);
    expect(await run(root, '--undo', '--dry-run')).toMatchObject({ code: 0, out: expect.stringContaining(legacy.at.privateKey) });
    expect(await run(root, '--undo', '--yes')).toMatchObject({ code: 0 });
    expect(await legacy.read()).toMatchObject(renewed);
    const modes = await Promise.all(['certificate', 'privateKey', 'ca'].map((part) => stat(legacy.at[part as 'ca'])));
    expect(modes.map(({ mode }) => mode & 0o777)).toEqual([0o644, 0o600, 0o644]);
    expect(await ours(root)).toEqual(nothingOfOurs);
  });

  test('where nobody can be asked it needs --yes', async () => {
    const { root } = await machine();
    expect(await run(root)).toMatchObject({ code: 2, err: expect.stringContaining('--yes') });
    expect(await ours(root)).toEqual([]);
  });

  test('B5: refused while the older agent runs, with the line that stops it', async () => {
    const { root } = await machine();
    await mkdir(join(root, 'proc/77'), { recursive: true });
    await writeFile(join(root, 'proc/77/cmdline'), '/usr/bin/runos-node-agent\0');
    await writeFile(join(root, 'proc/77/cgroup'), '0::/system.slice/runos-node-agent.service\n');
    const { code, err } = await run(root, '--yes');
    expect({ code, err }).toMatchObject({
      code: 1,
      err: expect.stringContaining('`systemctl disable --now runos-node-agent.service`'),
    });
    expect(await ours(root)).toEqual([]);
  });

  test('B5: refused while its lock is held, and while its unit starts with the machine', async () => {
    const { root } = await machine();
    await mkdir(join(root, 'run/runos'), { recursive: true });
    await symlink('/proc', join(root, 'proc'));
    const holder = spawn('flock', ['-n', join(root, 'run/runos/agent.lock'), '-c', 'echo held; read _'], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    onTestFinished(() => void holder.kill());
    await once(holder.stdout, 'data');
    expect(await run(root, '--yes')).toMatchObject({ code: 1, err: expect.stringMatching(/process \d+ holds .*agent\.lock/) });
    holder.stdin.end();
    await once(holder, 'exit');
    await mkdir(join(root, 'etc/systemd/system/multi-user.target.wants'), { recursive: true });
    await symlink('/x', join(root, 'etc/systemd/system/multi-user.target.wants/runos-agent.service'));
    const line = 'runos-agent.service would start with the machine: `systemctl disable --now runos-agent.service`';
    expect(await run(root, '--yes')).toMatchObject({ code: 1, err: expect.stringContaining(line) });
    expect(await ours(root)).toEqual([]);
  });

  test('refused with all that is wrong: another node, another root of the registration', async () => {
    const root = await tempFolder();
    const { at } = await legacyMachine(root, pki, wish);
    const text = await readFile(at.config, 'utf8');
    const more = `${text.replace('nid: n-1', 'nid: n-2')}`.replace(
      'unknown:',
      `  public-ca-sha256: ${'ab'.repeat(32)}\nunknown:`,
    );
    await writeFile(at.config, more);
    const { code, err } = await run(root, '--yes');
    expect(code).toBe(1);
    expect(err).toContain('node.nid is n-2');
    expect(err).toContain('mtls.public-ca-sha256');
    expect(await ours(root)).toEqual([]);
  });

  test('an agent of a half done adoption does not start', async () => {
    const { root } = await machine();
    await run(root, '--yes');
    const path = join(root, 'data/adoption.json');
    await writeFile(path, (await readFile(path, 'utf8')).replace('"taken"', '"returning"'));
    const agent = spawn(holdfast, ['agent', '--root', root, '--data-dir', '/data'], { stdio: ['ignore', 'ignore', 'pipe'] });
    onTestFinished(() => void agent.kill('SIGKILL'));
    let err = '';
    agent.stderr.on('data', (chunk: Buffer) => {
      err += chunk.toString();
    });
    expect((await once(agent, 'close'))[0]).toBe(1);
    expect(err).toContain('`holdfast adopt --undo`');
  });
});

const crashing = fileURLToPath(new URL('./adoption-crash.ts', import.meta.url));

/** Whether the program was killed before the n-th change, and not at its end by then. */
async function crashAt(step: number, root: string, verb: 'adopt' | 'undo'): Promise<boolean> {
  const child = spawn(process.execPath, [...sourceArguments, crashing, root, verb, String(step)], { stdio: 'inherit' });
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  if (signal === null) expect(code).toBe(0);
  return signal === 'SIGKILL';
}

/** Every step in the full size, every third else. */
const STRIDE = process.env.HOLDFAST_TEST_SIZE === 'full' ? 1 : 3;

/** The steps of one verb, two side by side, until there are no more. Returns how many there are, at least. */
async function everyStep(check: (step: number) => Promise<boolean>): Promise<number> {
  for (let first = 1; ; first += 2 * STRIDE) {
    const died = await Promise.all([check(first), check(first + STRIDE)]);
    if (died.includes(false)) return died[0] === false ? first : first + STRIDE;
  }
}

describe('killed before each single step', () => {
  test('adopt: the older files stand untouched, and the same again completes it', { timeout: 300_000 }, async () => {
    const steps = await everyStep(async (step) => {
      const { root, legacy } = await machine();
      const before = await legacy.read();
      if (!(await crashAt(step, root, 'adopt'))) return false;
      expect(await legacy.read()).toEqual(before);
      expect(await crashAt(Number.MAX_SAFE_INTEGER, root, 'adopt')).toBe(false);
      expect((await ours(root)).filter((path) => !path.endsWith('.tmp'))).toEqual(afterAdoption(await serialIn(root)));
      expect(await legacy.read()).toEqual(before);
      return true;
    });
    expect(steps).toBeGreaterThan(30);
  });

  test('undo after a renewal: the newest pair is always whole somewhere, and the same again completes it', {
    timeout: 300_000,
  }, async () => {
    const steps = await everyStep(async (step) => {
      const { root, legacy } = await machine();
      expect(await crashAt(Number.MAX_SAFE_INTEGER, root, 'adopt')).toBe(false);
      await renew(root);
      if (!(await crashAt(step, root, 'undo'))) return false;
      const { current } = await storeIn(root).load(options);
      if (current === undefined) expect(await legacy.read()).toMatchObject(renewed);
      else expect(current).toMatchObject(renewed);
      expect(await crashAt(Number.MAX_SAFE_INTEGER, root, 'undo')).toBe(false);
      expect(await legacy.read()).toMatchObject(renewed);
      expect((await ours(root)).filter((path) => !path.endsWith('.tmp'))).toEqual(nothingOfOurs);
      return true;
    });
    expect(steps).toBeGreaterThan(20);
  });
});

test('kill -9 at any moment, to and fro: the pair is never lost', { timeout: 120_000 }, async () => {
  const { root, legacy } = await machine();
  const { certificate, privateKey, ca } = await legacy.read();
  for (let round = 0; round < 12; round += 1) {
    const isUndo = round % 2 === 1;
    const args = isUndo ? ['--undo', '--yes'] : ['--yes'];
    const child = start(root, ...args);
    const ended = once(child, 'exit');
    await sleep(100 + ((round * 73) % 400));
    child.kill('SIGKILL');
    await ended;
    expect(await legacy.read()).toMatchObject({ certificate, privateKey, ca });
    // An undo that was begun is ended first.
    const again = await run(root, ...args);
    expect(again).toMatchObject({ code: 0 });
    expect((await ours(root)).filter((path) => !path.endsWith('.tmp'))).toEqual(
      isUndo ? nothingOfOurs : afterAdoption(await serialIn(root)),
    );
  }
});
