import { execFileSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createSecureServer } from 'node:http2';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ExecaCommandRunner } from '../../../src/adapters/command/execa-command-runner.js';
import { MachineReader } from '../../../src/adapters/preflight/machine-reader.js';
import { NetworkProber } from '../../../src/adapters/preflight/network-prober.js';
import type { HostPort, PortNumber } from '../../../src/domain/kernel/network.js';
import { absolutePath } from '../../../src/domain/kernel/paths.js';
import { egressChecks } from '../../../src/domain/preflight/egress-checks.js';
import type { PreflightFacts, Wanted } from '../../../src/domain/preflight/model.js';
import type { CommandRunner } from '../../../src/ports/command/command-runner.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { tempFolder } from '../../support/temp-folder.js';
import { throwawayCertificate } from '../../support/throwaway-certificate.js';

const { signal } = new AbortController();
const nobody: Wanted = { role: 'worker', ranges: [] };

async function prober(parts: { readonly commands?: CommandRunner; readonly now?: number } = {}) {
  const folder = await tempFolder();
  const root = absolutePath(folder);
  if (root === undefined) throw new Error(folder);
  const clock = new FakeClock(parts.now ?? Date.now());
  return { folder, prober: new NetworkProber({ files: new MachineReader(root), commands: parts.commands, clock }) };
}

async function listening(server: Server | ReturnType<typeof createTcpServer>): Promise<HostPort> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { host: '127.0.0.1', port: port as PortNumber };
}

async function web(answer: RequestListener): Promise<string> {
  const { port } = await listening(createServer(answer));
  return `http://127.0.0.1:${port}/`;
}

function judged(check: string, facts: Partial<PreflightFacts>, wanted: Partial<Wanted>): string {
  const verdict = egressChecks
    .find(({ name }) => name === check)
    ?.judge({ now: 0, proxy: {}, ...facts }, { ...nobody, ...wanted });
  return `${verdict?.state}: ${verdict?.finding}`;
}

describe('egress', () => {
  const judge = async (url: string) => {
    const wanted = { ...nobody, targets: [url] };
    return judged('egress', { answers: await (await prober()).prober.answers(wanted, signal) }, wanted);
  };

  test('any answer is one, nobody there is none', async () => {
    const url = await web((_, response) => response.writeHead(500).end());
    expect(await judge(url)).toBe(`ok: ${url}`);
    expect(await judge('http://127.0.0.1:9/')).toContain('problem: http://127.0.0.1:9/: connect ECONNREFUSED');
  });

  test('what is no HTTP, and an endless answer, end in time', async () => {
    const { port } = await listening(createTcpServer((socket) => socket.on('error', () => {}).end('\0'.repeat(100_000))));
    expect(await judge(`http://127.0.0.1:${port}/`)).toMatch(/^problem: /);
    const endless = await web((_, response) => {
      const more = setInterval(() => response.write('x'.repeat(100_000)), 1);
      response.on('close', () => clearInterval(more));
    });
    expect(await judge(endless)).toBe(`ok: ${endless}`);
  });
});

test.each<[string, RequestListener, string]>([
  ['nothing', (_, response) => response.writeHead(204).end(), 'ok: URL'],
  [
    'a redirect',
    (_, response) => response.writeHead(302, { location: 'http://login.test/' }).end(),
    'problem: URL answers a redirect to http://login.test/: a portal stands between',
  ],
  ['a page', (_, response) => response.end('<html>log in</html>'), 'problem: URL answers status 200: a portal stands between'],
])('captive portal: %s', async (_, answer, expected) => {
  const url = await web(answer);
  const wanted = { ...nobody, knownAnswer: url };
  const knownAnswer = await (await prober()).prober.knownAnswer(wanted, signal);
  expect(judged('captive-portal', { knownAnswer }, wanted)).toBe(expected.replace('URL', url));
});

test('clock: by the Date of a target, and of a control plane whose certificate is nobody’s', async () => {
  const day = 86_400_000;
  const url = await web((_, response) => response.end());
  const late = (await prober({ now: Date.now() - day })).prober;
  const answers = await late.answers({ ...nobody, targets: [url] }, signal);
  expect(judged('clock-offset', { answers }, {})).toMatch(/^problem: 8(6399|6400) s behind .*: certificates are refused$/);

  const pair = throwawayCertificate(await tempFolder(), ['IP:127.0.0.1']);
  const server = createSecureServer(pair, (_, response) => response.writeHead(415).end());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const at = { host: '127.0.0.1', port: port as PortNumber };
  const serverClock = await late.serverClock({ ...nobody, server: at }, signal);
  expect(judged('clock-offset', { serverClock }, {})).toContain(`behind https://127.0.0.1:${port}`);
  const right = await (await prober()).prober.serverClock({ ...nobody, server: at }, signal);
  expect(judged('clock-offset', { serverClock: right }, {})).toMatch(/^ok: /);
});

describe('apt', () => {
  const judge = async (line: string, settings = '') => {
    const made = await prober();
    await mkdir(join(made.folder, 'etc/apt/apt.conf.d'), { recursive: true });
    await writeFile(join(made.folder, 'etc/apt/apt.conf.d/90own'), settings);
    await mkdir(join(made.folder, 'etc/apt/sources.list.d'), { recursive: true });
    await writeFile(join(made.folder, 'etc/apt/sources.list.d/own.list'), `${line}\n`);
    const wanted = { ...nobody, asksRepositories: true };
    return judged('apt', { repositories: await made.prober.repositories(wanted, signal) }, wanted);
  };

  test('signed, unsigned, gone and trusted blindly', async () => {
    const url = await web(({ url: path }, response) => {
      if (path === '/dists/signed/InRelease') response.end('-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n');
      else if (path?.startsWith('/moved/')) response.writeHead(302, { location: path.slice('/moved'.length) }).end();
      else if (path?.startsWith('/loop/')) response.writeHead(302, { location: path }).end();
      else response.writeHead(404).end();
    });
    expect(await judge(`deb ${url} signed main`)).toBe('ok: 1 are signed');
    expect(await judge(`deb ${url}moved signed main`)).toBe('ok: 1 are signed');
    expect(await judge(`deb ${url}loop signed main`)).toBe(`problem: ${url}loop signed: status 302, and nothing signed`);
    expect(await judge(`deb ${url} bare main`, 'Acquire::http::Proxy "http://192.0.2.1:3128";')).toMatch(/^unknown: .* proxy/);
    expect(await judge(`deb ${url} bare main`)).toBe(`problem: ${url} bare: status 404, and nothing signed`);
    expect(await judge('deb http://127.0.0.1:9 x main')).toContain('problem: http://127.0.0.1:9 x: connect ECONNREFUSED');
    expect(await judge(`deb [trusted=yes] ${url} signed main`)).toMatch(/^warning: .* without a signature$/);
    expect(await judge('')).toMatch(/^warning: apt has no repository/);
  });
});

describe('UDP', () => {
  async function socket(answer: (message: Buffer, back: (message: Buffer) => void) => void): Promise<HostPort> {
    const own = createSocket('udp4');
    own.on('message', (message, from) => answer(message, (back) => own.send(back, from.port, from.address)));
    own.bind(0, '127.0.0.1');
    await once(own, 'listening');
    onTestFinished(() => void own.close());
    return { host: '127.0.0.1', port: own.address().port as PortNumber };
  }
  const judge = async (udpEcho: HostPort) =>
    judged('udp-egress', { udpEcho: await (await prober()).prober.udpEcho({ ...nobody, udpEcho }, signal) }, { udpEcho });

  test('comes back, also when one is lost', async () => {
    expect(await judge(await socket((message, back) => back(message)))).toMatch(/^ok: /);
    let count = 0;
    expect(await judge(await socket((message, back) => count++ > 0 && back(message)))).toMatch(/^ok: /);
  });

  test('is swallowed, refused, or answered by somebody else', async () => {
    const [silent, other] = [await socket(() => {}), await socket((_, back) => back(Buffer.from('hello')))];
    const closed: HostPort = { host: '127.0.0.1', port: 9 as PortNumber };
    const [one, two, three] = await Promise.all([judge(silent), judge(other), judge(closed)]);
    expect(one).toContain('nothing came back in 3 attempts of 1 s');
    expect(two).toContain('nothing came back in 3 attempts of 1 s');
    expect(three).toMatch(/^problem: 127.0.0.1:9: .*ECONNREFUSED/);
  });
});

describe.runIf(process.getuid?.() === 0)('firewall, by nft in a namespace', () => {
  const namespace = `preflight-${process.pid}`;
  const real = new ExecaCommandRunner();
  const inside: CommandRunner = {
    run: (command, options) => real.run({ ...command, argv: ['ip', 'netns', 'exec', namespace, ...command.argv] }, options),
  };
  const judge = async (rules: string) => {
    execFileSync('ip', ['netns', 'exec', namespace, 'nft', '-f', '-'], { input: rules });
    return judged('firewall', { firewall: await (await prober({ commands: inside })).prober.firewall({ signal }) }, {});
  };

  test('names the rule, and the policy, that drops', async () => {
    execFileSync('ip', ['netns', 'add', namespace]);
    onTestFinished(() => void execFileSync('ip', ['netns', 'delete', namespace]));
    const chain = (policy: string, rule: string) =>
      `flush ruleset; table inet own { chain in { type filter hook input priority 0; policy ${policy}; ${rule}; }; }`;
    expect(await judge('flush ruleset')).toBe('ok: none drops them');
    expect(await judge(chain('accept', 'tcp dport { 22, 10000-11000 } drop'))).toMatch(
      /^problem: TCP 10250: nft inet own in: rule with handle \d+$/,
    );
    expect(await judge(chain('drop', 'ct state established,related accept'))).toBe(
      'problem: TCP 10250: nft inet own in: policy drop',
    );
    expect(await judge(chain('drop', 'ip saddr 192.0.2.0/24 accept'))).toBe('ok: none drops them');
    // What the remedy says mends it.
    execFileSync('ip', ['netns', 'exec', namespace, 'nft', '-f', '-'], { input: chain('drop', 'ct state invalid drop') });
    execFileSync('ip', ['netns', 'exec', namespace, ...'nft insert rule inet own in tcp dport 10250 accept'.split(' ')]);
    expect(await judge('')).toBe('ok: none drops them');
  });
});
