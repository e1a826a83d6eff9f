import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { Daemon, temporaryFolder } from './support/daemon.js';
import { until } from './support/fleet-daemon.js';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../..');
/** Of this run alone. */
const port = 20_000 + Math.floor(Math.random() * 10_000);

/** What dig prints with `+short`, or its status line without. */
async function dig(...args: readonly string[]): Promise<string> {
  const { stdout } = await run('dig', ['@127.0.0.1', '-p', String(port), '+tries=1', '+time=2', ...args]);
  return stdout.trim();
}

test('a fresh user: the name of a service leads to it, by UDP and TCP, as soon as it is applied and after kill -9', async () => {
  await using folder = await temporaryFolder();
  const server = createServer((_, response) => response.end('hello')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const backend = address !== null && typeof address === 'object' ? address.port : 0;
  const daemon = new Daemon(join(folder.path, 'data'), { flags: ['--dns-listen', `127.0.0.1:${port}`] });
  try {
    await daemon.start();
    expect(daemon.stderr).toContain(`dns      127.0.0.1:${port}, zone holdfast.`);
    expect(await dig('+short', 'web.default.holdfast')).toBe('');
    expect(await dig('web.default.holdfast')).toContain('status: NXDOMAIN');
    const spec = { ports: [{ name: 'http', port: 80 }], endpoints: [{ address: '127.0.0.1', port: backend }] };
    const manifest = { apiVersion: 'holdfast/v1', kind: 'Service', metadata: { name: 'web' }, spec };
    expect(await daemon.cli(['apply', '-f', '-'], JSON.stringify(manifest))).toMatchObject({ code: 0 });
    const vip = await dig('+short', 'web.default.holdfast');
    expect(vip).toMatch(/^127\.\d+\.\d+\.\d+$/);
    expect(await dig('+short', '+tcp', 'WEB.default.holdfast')).toBe(vip);
    expect(await dig('+short', '-x', vip)).toBe('web.default.holdfast.');
    expect(await dig('+short', '_http._tcp.web.default.holdfast', 'SRV')).toBe('0 1 80 web.default.holdfast.');
    expect(await dig('+short', 'web.default.holdfast', 'AAAA')).toBe('');
    expect(await dig('web.default.holdfast', 'AAAA')).toContain('status: NOERROR');
    expect(await dig('example.com')).toContain('status: REFUSED');
    expect(await (await fetch(`http://${vip}:80/`)).text()).toBe('hello');

    await daemon.stop('SIGKILL');
    await daemon.start();
    await until(
      () => dig('+short', 'web.default.holdfast'),
      (found) => found === vip,
    );
    expect(await daemon.stop()).toBe(0);
    await daemon.start();
    expect(await daemon.cli(['apply', '-f', join(root, 'examples/hello')])).toMatchObject({ code: 0 });
    expect(await dig('+short', 'hello.default.holdfast')).toMatch(/^127\./);
  } finally {
    await daemon.stop('SIGKILL');
    server.close();
  }
});

test('bytes that are no question, 20,000 of them, leave it answering', async () => {
  await using folder = await temporaryFolder();
  const daemon = new Daemon(join(folder.path, 'data'), { flags: ['--dns-listen', `127.0.0.1:${port}`] });
  try {
    await daemon.start();
    const { createSocket } = await import('node:dgram');
    const socket = createSocket('udp4');
    for (let number = 0; number < 20_000; number++) {
      const noise = Buffer.from(Array.from({ length: number % 120 }, () => Math.floor(Math.random() * 256)));
      await new Promise<void>((sent) => socket.send(noise, port, '127.0.0.1', () => sent()));
    }
    socket.close();
    await until(
      () => dig('holdfast', 'SOA').catch(() => ''),
      (found) => found.includes('status: NOERROR'),
    );
  } finally {
    await daemon.stop('SIGKILL');
  }
});
