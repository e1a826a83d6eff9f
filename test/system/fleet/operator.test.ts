import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCli, temporaryFolder } from '../support/daemon.js';
import { FleetDaemon, until } from '../support/fleet-daemon.js';
import { FleetNetwork } from '../support/fleet-network.js';
import { FleetPeer } from '../support/fleet-peer.js';

/** Only what the CLI and the daemons print is used, as by somebody who follows the documentation. */
test('a fresh operator: server, token, register, agent, apply, traffic, send, results', async () => {
  await using stack = new AsyncDisposableStack();
  const { path: folder } = stack.use(await temporaryFolder());
  const network = stack.use(await FleetNetwork.make());
  const start = async (daemon: FleetDaemon) => {
    stack.defer(async () => void (await daemon.stop('SIGKILL')));
    await daemon.start();
    return daemon.stderr;
  };

  const server = new FleetDaemon({ verb: 'server', space: network.hub, root: join(folder, 'server'), flags: [] });
  const announced = await start(server);
  const ca = /register .*, root (\S+)/.exec(announced)?.[1] ?? '';
  const serverDir = /data +(\S+)/.exec(announced)?.[1] ?? '';
  const ask = (...args: readonly string[]) => runCli([...args, '--data-dir', serverDir]);

  const created = await ask('token', 'create');
  expect(created).toMatchObject({ code: 0 });
  const token = created.stdout.trim();

  const machine = await network.join();
  const root = join(folder, 'machine');
  await mkdir(join(root, 'etc'), { recursive: true });
  await writeFile(join(root, 'etc/machine-id'), '0123456789abcdef0123456789abcdef\n');
  const args = ['register', '--server', network.hub.address, '--account', 'default', '--ca', ca, '--token-file', '-'];
  const onMachine = ['ip', 'netns', 'exec', machine.name];
  const registered = await runCli([...args, '--root', root, '--data-dir', '/data'], token, onMachine);
  expect(registered).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^registered as n-\w+; start the agent with: holdfast agent --root \S+ --data-dir \/data\n$/),
  });
  const nid = registered.stdout.split(/[ ;]/)[2] ?? '';

  expect(registered.stdout).toContain(` --root ${root} `);

  const agent = new FleetDaemon({ verb: 'agent', space: machine, root, flags: ['--metrics-listen', 'off'] });
  expect(await start(agent)).toContain(`node     ${nid} of default`);
  const listed = await until(
    () => ask('nodes'),
    ({ stdout }) => stdout.includes('online'),
  );
  expect(listed.stdout.split('\n')[1]).toMatch(new RegExp(`^${nid} +[a-z0-9-]+ +online +\\S+ +\\d+s ago +\\d+\\.\\d+\\.\\d+ `));

  const backend = await FleetPeer.start(network.hub, 'greet', 'hello');
  stack.defer(() => backend.kill());
  const manifest = join(folder, 'hello.yaml');
  const endpoint = `{ name: a, address: ${network.hub.address}, port: ${backend.port} }`;
  await writeFile(
    manifest,
    `apiVersion: holdfast/v1\nkind: Service\nmetadata: { name: hello }\nspec:\n  ports: [{ name: tcp, port: 80 }]\n  endpoints: [${endpoint}]\n`,
  );
  const applied = await ask('apply', '-f', manifest);
  expect(applied).toMatchObject({ code: 0, stdout: expect.stringMatching(/^service\/hello created/) });
  const services = await until(
    () => agent.cli(['get', 'services']),
    ({ stdout }) => stdout.includes('hello'),
  );
  const vip = /\b10\.192\.\d+\.\d+\b/.exec(services.stdout)?.[0] ?? '';
  const client = await FleetPeer.start(machine, 'client', vip, 80, vip, 80);
  stack.defer(() => client.kill());
  await until(
    () => client.counts(),
    ({ asked }) => asked > 3,
  );

  const status = await ask('send', nid, 'GET_NODE_STATUS', '--wait');
  expect(status).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(status.stdout)).toEqual({ nodeIsReady: true });
  const refused = await ask('send', nid, 'RUN_KUBECTL_COMMAND', '--json', '["proxy"]', '--wait');
  expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 1, stdout: '' });
  expect(refused.stderr).toMatch(/^error: /);
  const unknown = await ask('send', 'n-nobody', 'GET_NODE_STATUS', '--wait');
  expect(unknown).toMatchObject({ code: 1, stderr: expect.stringMatching(/n-nobody.*what to do: /s) });
  const results = await ask('results');
  expect(
    results.stdout
      .split('\n')
      .slice(1, 3)
      .map((line) => line.split(/ +/)[2]),
  ).toEqual(['GET_NODE_STATUS', 'RUN_KUBECTL_COMMAND']);
  for (const daemon of [agent, server])
    expect(await daemon.cli(['status'])).toMatchObject({ code: 0, stdout: expect.stringContaining('ready') });
  expect(await agent.stop()).toBe(0);
  expect(await server.stop()).toBe(0);
});
