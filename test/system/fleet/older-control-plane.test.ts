import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { L2, type RawServed, RawServer } from '../../support/raw-grpc.js';
import { encode, RawMessage } from '../../support/raw-protobuf.js';
import { ThrowawayPki } from '../../support/throwaway-pki.js';
import { holdfast, runCli } from '../support/daemon.js';

const b64 = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64');
/** `jsonB64`, `type` and `tag` of a message on the stream. */
const envelope = (type: string, tag: string, jsonB64: string) => encode([1, jsonB64], [5, type], [10, tag]);

let folder: string;
let pki: ThrowawayPki;
let raw: RawServer;
let agent: ChildProcess;
const replies = new Map<string, { readonly type: string; readonly text: string }>();
let beats = 0;

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
    call.send(envelope('APPLY_CR', 'b', b64({ crB64: 'eA==' })));
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
  // Its certificates name the node in the subject alone.
  const node = pki.issue({ name: 'node-17', usage: 'clientAuth' });
  raw = new RawServer({ ca: pki.root, cert: server.certificate, key: server.privateKey }, onMessage);
  const port = await raw.listen();
  await mkdir(join(folder, 'certs'), { mode: 0o700 });
  await writeFile(join(folder, 'certs/ca.crt'), pki.root);
  await writeFile(join(folder, 'certs/mtls.crt'), node.certificate);
  await writeFile(join(folder, 'certs/mtls.key'), node.privateKey, { mode: 0o600 });
  const enrolment = { servers: [`localhost:${port}`], nid: 'node-17', aid: 'acme' };
  await writeFile(join(folder, 'enrolment.json'), JSON.stringify(enrolment));
  agent = spawn(holdfast, ['agent', '--data-dir', folder, '--metrics-listen', 'off'], { stdio: 'ignore' });
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
  expect(replies.get('b')).toMatchObject({ type: 'ERROR', text: expect.stringMatching(/^NOT_BUILT: APPLY_CR/) });
  expect(replies.get('c')).toMatchObject({ type: 'ERROR', text: expect.stringMatching(/SOMETHING_NEW/) });
  expect(replies.get('d')).toEqual({
    type: 'STREAM_CLOSED',
    text: expect.stringMatching(/namespace: expected a DNS label.*"error":true/),
  });
  await expect.poll(() => beats, { timeout: 20_000 }).toBeGreaterThan(2);
  const { code, stdout } = await runCli(['status', '--data-dir', folder]);
  expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/state +ready/) });
});
