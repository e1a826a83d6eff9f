import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { legacyMachine } from '../../support/legacy-machine.js';
import { L2, type RawServed, RawServer } from '../../support/raw-grpc.js';
import { encode, RawMessage } from '../../support/raw-protobuf.js';
import { ThrowawayPki } from '../../support/throwaway-pki.js';
import { type CliResult, holdfast, runCli } from '../support/daemon.js';

const b64 = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64');
/** `jsonB64`, `type` and `tag` of a message on the stream. */
const envelope = (type: string, tag: string, jsonB64: string) => encode([1, jsonB64], [5, type], [10, tag]);

let folder: string;
let pki: ThrowawayPki;
let raw: RawServer;
let agent: ChildProcess;
const replies = new Map<string, { readonly type: string; readonly text: string }>();
let beats = 0;
let legacy: Awaited<ReturnType<typeof legacyMachine>>;
let former: object;
let adopted: CliResult;
const place = () => ['--root', folder, '--data-dir', '/data'];

/** What an older control plane does: answers heartbeats, and after the second one asks for four things. It knows none of our services. */
function onMessage(bytes: Buffer, call: RawServed): void {
  if (call.headers[':path'] !== `${L2}/NodeAgentStream`) {
    const status = { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '12', 'grpc-message': 'unknown service' };
    if (!call.stream.headersSent) call.stream.respond(status, { endStream: true });
    return;
  }
  const message = new RawMessage(bytes);
  const [jsonB64, type, tag] = [message.text(1), message.text(5), message.text(10)];
  if (type === 'NodeAgentHeartbeatToServer') {
    call.send(envelope(type, tag, b64({ isHealthy: true, message: '' })));
    beats += 1;
    if (beats !== 2) return;
    call.send(envelope('GET_NODE_STATUS', 'a', b64({})));
    call.send(envelope('UPGRADE_NODE_K8S', 'b', b64({ targetKubernetesVersion: '1.33.0; reboot' })));
    call.send(envelope('SOMETHING_NEW', 'c', b64({})));
    call.send(
      envelope('OPEN_STREAM', 'd', b64({ target: 'SERVICE_WEBSOCKET', namespace: 'x.evil.com/', name: 'api', port: 80 })),
    );
    return;
  }
  const text = type === 'ERROR' ? jsonB64 : Buffer.from(jsonB64, 'base64').toString('utf8');
  replies.set(tag, { type: type, text });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-older-'));
  pki = new ThrowawayPki();
  const server = pki.issue({ name: 'server', san: ['DNS:localhost'], usage: 'serverAuth' });
  raw = new RawServer({ ca: pki.root, cert: server.certificate, key: server.privateKey }, onMessage);
  const port = await raw.listen();
  // An older agent was here. Its certificate names the node in the subject alone.
  legacy = await legacyMachine(folder, pki, { nid: 'node-17', aid: 'acme', server: `localhost:${port}` });
  former = await legacy.read();
  adopted = await runCli(['adopt', '--yes', ...place()]);
  agent = spawn(holdfast, ['agent', '--metrics-listen', 'off', ...place()], { stdio: 'ignore' });
});

afterAll(async () => {
  if (agent.exitCode === null) {
    agent.kill('SIGTERM');
    await once(agent, 'exit');
  }
  await raw.close();
  pki.remove();
  await rm(folder, { recursive: true, force: true });
});

test('an older control plane, which has no log and names nodes its own way, has a whole agent in ours', {
  timeout: 60_000,
}, async () => {
  await expect.poll(() => [...replies.keys()].sort(), { timeout: 30_000 }).toEqual(['a', 'b', 'c', 'd']);
  expect(replies.get('a')).toEqual({ type: 'NODE_STATUS', text: '{"nodeIsReady":true}' });
  expect(replies.get('b')).toMatchObject({
    type: 'UPGRADE_NODE_K8S_RESPONSE',
    text: expect.stringMatching(/"success":false,"message":"INVALID: .*targetKubernetesVersion: a version such as/),
  });
  expect(replies.get('c')).toMatchObject({ type: 'ERROR', text: expect.stringMatching(/SOMETHING_NEW/) });
  expect(replies.get('d')).toEqual({
    type: 'STREAM_CLOSED',
    text: expect.stringMatching(/namespace: expected a DNS label.*"error":true/),
  });
  await expect.poll(() => beats, { timeout: 20_000 }).toBeGreaterThan(2);
  const { code, stdout } = await runCli(['status', '--data-dir', join(folder, 'data')]);
  expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/state +ready/) });
});

test('B5: it was adopted; the agent holds the older one’s lock while it runs, and gives everything back', {
  timeout: 60_000,
}, async () => {
  expect(adopted).toMatchObject({ code: 0, stdout: expect.stringMatching(/^adopted node node-17 of acme; /) });
  const lock = join(folder, 'run/runos/agent.lock');
  const tries = async () => {
    const [code] = await once(spawn('flock', ['-n', lock, 'true'], { stdio: 'ignore' }), 'exit');
    return code;
  };
  expect(await tries()).toBe(1);
  expect(await runCli(['adopt', '--undo', '--yes', ...place()])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('agent.data_dir_locked'),
  });
  agent.kill('SIGTERM');
  await once(agent, 'exit');
  expect(await tries()).toBe(0);
  expect(await runCli(['adopt', '--undo', '--yes', ...place()])).toMatchObject({ code: 0 });
  expect(await legacy.read()).toEqual(former);
});
