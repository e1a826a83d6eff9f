import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { legacyMachine } from '../../support/legacy-machine.js';
import { L2, type RawServed, RawServer } from '../../support/raw-grpc.js';
import { encode, RawMessage } from '../../support/raw-protobuf.js';
import { ThrowawayPki } from '../../support/throwaway-pki.js';
import { holdfast, runCli } from '../support/daemon.js';

interface Line {
  readonly command: string;
  readonly after?: number;
  readonly matches?: string;
  readonly ignoreFailure?: boolean;
}

let folder: string;
let pki: ThrowawayPki;
let raw: RawServer;
/** The list, or why there is none. */
let list: readonly Line[] | string = [];
/** What the control plane was told. */
let told: string[] = [];
const place = () => ['--root', folder, '--data-dir', '/data'];
const mark = (name: string) => `echo ${name} >> ${folder}/ran`;
const ran = async () => (await readFile(join(folder, 'ran'), 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');

function answer(call: RawServed, message: Buffer): void {
  call.send(message);
  call.stream.end();
}

function refuse({ stream }: RawServed, code: number, details: string): void {
  const status = { 'grpc-status': String(code), 'grpc-message': details };
  stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...status }, { endStream: true });
}

/** A Nodeward-compatible control plane with an install list. */
function onMessage(bytes: Buffer, call: RawServed): void {
  const message = new RawMessage(bytes);
  const method = call.headers[':path'];
  if (method === `${L2}/UpdateStatus`) told.push(message.text(5));
  if (method === `${L2}/AddNodelog`) told.push(`${message.text(20) || '-'} ${message.text(15)}`);
  if (method !== `${L2}/GetInstallCommands`) answer(call, Buffer.alloc(0));
  else if (typeof list === 'string') refuse(call, 9, list);
  else answer(call, encode(...list.map((line, index) => [5, encodeLine(line, index + 1)] as const)));
}

function encodeLine({ command, after = 0, matches = '', ignoreFailure = false }: Line, id: number): Buffer {
  return encode([5, id], [10, command], [15, after], [25, matches], [30, ignoreFailure]);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-install-'));
  pki = new ThrowawayPki();
  const server = pki.issue({ name: 'server', san: ['DNS:localhost'], usage: 'serverAuth' });
  raw = new RawServer({ ca: pki.root, cert: server.certificate, key: server.privateKey }, onMessage);
  const port = await raw.listen();
  await legacyMachine(folder, pki, { nid: 'node-17', aid: 'acme', server: `localhost:${port}` });
  expect(await runCli(['adopt', '--yes', ...place()])).toMatchObject({ code: 0 });
});
beforeEach(async () => {
  told = [];
  await rm(join(folder, 'ran'), { force: true });
});
afterAll(async () => {
  await raw.close();
  pki.remove();
  await rm(folder, { recursive: true, force: true });
});

test('a list is carried out, and told as it goes', async () => {
  list = [
    { command: 'echo STATUS_UPDATE:INSTALLING' },
    { command: `${mark('one')}; echo "NODELOG_WARN: swap is on"; echo active` },
    { command: mark('two'), after: 2, matches: 'active$' },
    { command: mark('three'), after: 2, matches: '^inactive$' },
    { command: 'exit 3', ignoreFailure: true },
    { command: 'echo PROGRESS_UPDATE:100%' },
  ];
  const { code, stdout } = await runCli(['install', ...place(), '-o', 'json']);
  expect({ code, out: JSON.parse(stdout) }).toEqual({ code: 0, out: { installed: true, commands: 6, resumedAt: 0 } });
  expect(await ran()).toEqual(['one', 'two']);
  expect(told).toEqual(['INSTALLING', '- swap is on', 'NA_GENERIC command 5 ended with 3']);
  // Nothing is left of what they wrote.
  expect(await readdir(join(folder, 'data/install/run'))).toEqual([]);
});

test('a failure ends it with 1 and one block of cause and remedy; mended, the same again goes on there', async () => {
  list = [
    { command: mark('one') },
    { command: `test -e ${folder}/mended || { echo "E: Unable to locate package x" >&2; exit 100; }` },
  ];
  const first = await runCli(['install', ...place()]);
  expect(first).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/install.failed: command 2 ended with 100: .*NA_PKG_NOTFOUND/),
  });
  expect(told).toEqual(['INSTALL_ERROR', 'NA_PKG_NOTFOUND command 2 ended with 100']);
  await writeFile(join(folder, 'mended'), '');
  expect(await runCli(['install', ...place()])).toMatchObject({ code: 0, stdout: 'all 2 commands are done\n' });
  expect(await ran()).toEqual(['one']);
});

test('A8: killed -9 while each command runs and started again, each runs once; a second one beside it is refused', {
  timeout: 120_000,
}, async () => {
  list = [1, 2, 3].map((number) => ({ command: `${mark(`begin-${number}`)}; sleep 2; ${mark(`end-${number}`)}` }));
  for (const number of [1, 2, 3]) {
    const running = spawn(holdfast, ['install', ...place()], { stdio: 'ignore' });
    await expect.poll(ran, { timeout: 30_000, interval: 20 }).toContain(`begin-${number}`);
    if (number === 1) {
      expect(await runCli(['install', ...place()])).toMatchObject({ code: 1, stderr: expect.stringMatching(/install.running/) });
    }
    running.kill('SIGKILL');
    await once(running, 'exit');
  }
  expect(await runCli(['install', ...place(), '-o', 'json'])).toMatchObject({ code: 0 });
  expect(await ran()).toEqual([1, 2, 3].flatMap((number) => [`begin-${number}`, `end-${number}`]));
});

test('a control plane without a list: it is told, and ends with 1', async () => {
  list = 'no install plan is configured on this control plane';
  const { code, stderr } = await runCli(['install', ...place()]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/link.refused: no install plan is configured/) });
  expect(told[0]).toBe('INSTALL_ERROR');
});
