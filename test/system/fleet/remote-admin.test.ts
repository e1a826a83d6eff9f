import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, cp, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { EtcdRig, hasEtcd } from '../../support/etcd-rig.js';
import { holdfast, runCli, temporaryFolder } from '../support/daemon.js';
import { until } from '../support/fleet-daemon.js';

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** A `holdfast server` on loopback, as somebody starts it who operates it from elsewhere. */
class Server {
  readonly dataDir: string;
  readonly #flags: readonly string[];
  #ports: readonly [number, number, number] = [0, 0, 0];
  #child: ChildProcess | undefined;
  stderr = '';

  constructor(dataDir: string, flags: readonly string[] = []) {
    this.dataDir = dataDir;
    this.#flags = flags;
    onTestFinished(() => void this.#child?.kill('SIGKILL'));
  }

  get admin(): string {
    return `localhost:${this.#ports[0]}`;
  }

  get adminPort(): number {
    return this.#ports[0];
  }

  get register(): string {
    return `localhost:${this.#ports[1]}`;
  }

  async start(): Promise<void> {
    const [admin, l1, l2] = [await freePort(), await freePort(), await freePort()];
    this.#ports = [admin, l1, l2];
    const listen = [
      `--server-listen-admin=127.0.0.1:${admin}`,
      `--server-listen-l1=127.0.0.1:${l1}`,
      `--server-listen-l2=127.0.0.1:${l2}`,
      '--server-listen-metrics=off',
    ];
    const child = spawn(holdfast, ['server', '--data-dir', this.dataDir, ...listen, ...this.#flags], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#child = child;
    this.stderr = '';
    await new Promise<void>((resolve, reject) => {
      child.stderr.on('data', (chunk: Buffer) => {
        this.stderr += chunk.toString();
        if (/is ready[\s\S]*nodes /.test(this.stderr)) resolve();
      });
      child.once('exit', (code) => reject(new Error(`it ended with ${code}: ${this.stderr}`)));
    });
  }

  async stop(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined) return;
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
  }

  /** A verb over the network, with the certificate of this folder. */
  ask(certificate: string, ...args: readonly string[]) {
    return runCli([...args, '--admin', this.admin, '--admin-cert', certificate]);
  }
}

async function started(flags: readonly string[] = []) {
  const folder = await temporaryFolder();
  onTestFinished(() => folder[Symbol.asyncDispose]());
  const server = new Server(join(folder.path, 'server'), flags);
  await server.start();
  // Taken away from the server, as documented.
  const first = join(folder.path, 'laptop');
  await cp(join(server.dataDir, 'admin-client'), first, { recursive: true });
  await rm(join(server.dataDir, 'admin-client'), { recursive: true });
  return { folder: folder.path, server, first };
}

describe('a control plane that is operated from elsewhere', () => {
  test('the first certificate makes the others, each as far as its role goes', async () => {
    const { folder, server, first } = await started();
    expect(server.stderr).toContain(`remote    127.0.0.1:${server.adminPort}, first certificate ${server.dataDir}/admin-client`);
    expect((await readdir(first)).toSorted()).toEqual(['admin-ca.crt', 'admin.crt', 'admin.key']);
    expect((await stat(join(first, 'admin.key'))).mode & 0o777).toBe(0o600);

    const audited = (await readFile(join(server.dataDir, 'audit.log'), 'utf8')).trim().split('\n');
    const made = { type: 'admin.create_certificate admin', who: expect.stringMatching(/^server:./) };
    expect(audited.map((line) => JSON.parse(line))).toMatchObject([
      { ...made, result: 'allowed' },
      { ...made, result: 'done' },
    ]);
    expect(await server.ask(first, 'status')).toMatchObject({ code: 0, stdout: expect.stringContaining('ready') });
    const [viewer, operator] = [join(folder, 'viewer'), join(folder, 'operator')];
    expect(await server.ask(first, 'cert', 'create', 'vera', '--role', 'viewer', '--out', viewer)).toMatchObject({ code: 0 });
    expect(await server.ask(first, 'cert', 'create', 'olga', '--role', 'operator', '--out', operator)).toMatchObject({ code: 0 });

    const manifest = join(folder, 'hello.yaml');
    await writeFile(
      manifest,
      'apiVersion: holdfast/v1\nkind: Service\nmetadata: { name: hello }\nspec: { ports: [{ name: a, port: 80 }] }\n',
    );
    expect(await server.ask(viewer, 'apply', '-f', manifest)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('admin.not_allowed: admin:vera has the role viewer; this is for the role operator'),
    });
    expect(await server.ask(operator, 'apply', '-f', manifest)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('hello created'),
    });
    expect(await server.ask(viewer, 'get', 'services')).toMatchObject({ code: 0, stdout: expect.stringContaining('hello') });
    expect(await server.ask(operator, 'cert', 'create', 'eve', '--role', 'admin', '--out', join(folder, 'eve'))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('this is for the role admin'),
    });
    expect(await server.ask(operator, 'backup', join(folder, 'backup'), '--with-key')).toMatchObject({ code: 1 });
    const audit = await readFile(join(server.dataDir, 'audit.log'), 'utf8');
    expect(audit).toMatch(
      /"decision","who":"admin:olga:operator:[0-9a-f]{32}@127\.0\.0\.1:\d+","tag":"[^"]+","type":"admin\.apply"/,
    );
    expect(audit).toMatch(
      /"who":"admin:vera:viewer:[^"]+","tag":"-","type":"admin\/holdfast\.admin\.v1\.AdminService\/Apply".*"result":"denied/,
    );
  });

  test('the certificate of a node is refused, with the reason', async () => {
    const { folder, server, first } = await started();
    const token = (await server.ask(first, 'token', 'create')).stdout.trim();
    const root = join(folder, 'machine');
    await mkdir(join(root, 'etc'), { recursive: true });
    await writeFile(join(root, 'etc/machine-id'), '0123456789abcdef0123456789abcdef\n');
    const ca = join(server.dataDir, 'registration-ca.crt');
    const args = ['register', '--server', server.register, '--account', 'default', '--ca', ca, '--token-file', '-'];
    expect(await runCli([...args, '--root', root, '--data-dir', '/data'], token)).toMatchObject({ code: 0 });
    const posing = join(folder, 'posing');
    await mkdir(posing);
    await copyFile(join(root, 'data/certs/current/crt'), join(posing, 'admin.crt'));
    await copyFile(join(root, 'data/certs/current/key'), join(posing, 'admin.key'));
    await copyFile(join(first, 'admin-ca.crt'), join(posing, 'admin-ca.crt'));
    expect(await server.ask(posing, 'nodes')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /certificate\.wrong_issuer: certificate [0-9a-f]+ of node n-\w+ was not issued .* this port takes those of admins/,
      ),
    });
  });

  test('F4: a watch ends when its certificate is revoked, and a restart remembers that', async () => {
    const { folder, server, first } = await started();
    const lost = join(folder, 'lost');
    await server.ask(first, 'cert', 'create', 'lost', '--role', 'viewer', '--out', lost);
    const { certificates } = JSON.parse((await server.ask(first, 'cert', 'list', '-o', 'json')).stdout);
    const serial: string = certificates.find(({ name }: { name: string }) => name === 'lost').serial;
    const watching = server.ask(lost, 'get', 'services', '-w');
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const begun = performance.now();
    expect(await server.ask(first, 'cert', 'revoke', serial, '-y', '--reason', 'left in a train')).toMatchObject({ code: 0 });
    expect(await watching).toMatchObject({ code: 1, stderr: expect.stringContaining('revoked: left in a train') });
    // A second, five times, and a process of the CLI.
    expect(performance.now() - begun).toBeLessThan(7_000);
    expect(await server.ask(lost, 'nodes')).toMatchObject({ code: 1, stderr: expect.stringContaining('left in a train') });
    await server.stop();
    await server.start();
    expect(await server.ask(lost, 'nodes')).toMatchObject({ code: 1, stderr: expect.stringContaining('certificate.revoked') });
    expect(await server.ask(first, 'nodes')).toMatchObject({ code: 0 });
    // The first one is made once.
    expect(await readdir(server.dataDir)).not.toContain('admin-client');
  });

  test('strangers by the thousand leave it serving', async () => {
    const { server, first } = await started();
    const sockets = Array.from({ length: 1_000 }, (_, index) => {
      const socket = connect({ host: '127.0.0.1', port: server.adminPort });
      socket.on('error', () => {});
      if (index % 2 === 0) socket.write(Buffer.alloc(200, index % 256));
      return socket;
    });
    expect(await server.ask(first, 'status')).toMatchObject({ code: 0 });
    for (const socket of sockets) socket.destroy();
    await until(
      () => server.ask(first, 'nodes'),
      ({ code }) => code === 0,
    );
  });

  test('without the setting nothing listens, and no certificate lies about', async () => {
    await using folder = await temporaryFolder();
    const [l1, l2] = [await freePort(), await freePort()];
    const dataDir = join(folder.path, 'server');
    const listen = [`--server-listen-l1=127.0.0.1:${l1}`, `--server-listen-l2=127.0.0.1:${l2}`, '--server-listen-metrics=off'];
    const child = spawn(holdfast, ['server', '--data-dir', dataDir, ...listen], { stdio: 'ignore' });
    try {
      await until(
        () => runCli(['status', '--data-dir', dataDir]),
        ({ code }) => code === 0,
      );
      expect(await readdir(dataDir)).not.toContain('admin-client');
      const made = await runCli([
        'cert',
        'create',
        'alice',
        '--role',
        'viewer',
        '--out',
        join(folder.path, 'a'),
        '--data-dir',
        dataDir,
      ]);
      expect(made).toMatchObject({ code: 0 });
      expect(await runCli(['status', '--admin', 'localhost', '--admin-cert', join(folder.path, 'a')])).toMatchObject({ code: 3 });
    } finally {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    }
  });
});

test.skipIf(!hasEtcd)('replicas on one etcd take the same certificates, and refuse the same', async () => {
  const etcd = await EtcdRig.start();
  onTestFinished(() => etcd.stop());
  const flags = [`--server-etcd=${etcd.urls.join(',')}`];
  const { folder, server: one, first } = await started(flags);
  const two = new Server(join(folder, 'two'), flags);
  await mkdir(two.dataDir, { mode: 0o700 });
  await copyFile(join(one.dataDir, 'sealing.key'), join(two.dataDir, 'sealing.key'));
  await two.start();
  expect(await readdir(two.dataDir)).not.toContain('admin-client');
  expect(await two.ask(first, 'nodes')).toMatchObject({ code: 0 });
  const viewer = join(folder, 'viewer');
  await two.ask(first, 'cert', 'create', 'vera', '--role', 'viewer', '--out', viewer);
  expect(await one.ask(viewer, 'nodes')).toMatchObject({ code: 0 });
  const { certificates } = JSON.parse((await one.ask(first, 'cert', 'list', '-o', 'json')).stdout);
  const { serial } = certificates.find(({ name }: { name: string }) => name === 'vera');
  await one.ask(first, 'cert', 'revoke', serial, '-y');
  const refused = await until(
    () => two.ask(viewer, 'nodes'),
    ({ code }) => code === 1,
    5_000,
  );
  expect(refused.stderr).toContain('certificate.revoked');
});
