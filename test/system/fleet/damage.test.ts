import { execFile } from 'node:child_process';
import { copyFile, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Fleet } from '../support/fleet.js';
import { until } from '../support/fleet-daemon.js';
import type { FleetPeer } from '../support/fleet-peer.js';

const run = promisify(execFile);

let fleet: Fleet;
let client: FleetPeer;

beforeAll(async () => {
  fleet = await Fleet.start({ scripts: { append: 'echo @N\n', big: 'head -c 300000 /dev/zero | tr "\\\\0" x\n' } });
  const { hub } = fleet.network;
  const backends = { greet: await fleet.peer(hub, 'greet', 'hello'), echo: await fleet.peer(hub, 'echo') };
  for (const [name, { port }] of Object.entries(backends)) await fleet.apply(name, [{ name: 'a', address: hub.address, port }]);
  const { daemon } = fleet.agent();
  const vips = await until(
    () => fleet.services(daemon),
    (all) => all.size === 2,
  );
  client = await fleet.peer(daemon.space, 'client', vips.get('greet') ?? '', 80, vips.get('echo') ?? '', 80);
  await flows();
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** Traffic goes on now. */
async function flows(): Promise<void> {
  const { asked, echoed } = await client.counts();
  await until(
    () => client.counts(),
    (now) => now.asked > asked + 3 && now.echoed > echoed + 3,
  );
}

/** Ruins every page but the first, so that the file is still taken for what it is. */
async function damage(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    const { size } = await file.stat();
    for (let at = 4_096; at < size; at += 4_096) await file.write(Buffer.alloc(2_048, 0x55), 0, 2_048, at + 1_024);
  } finally {
    await file.close();
  }
}

test.each(['control.db', 'log.db'])(
  'a control plane whose %s is damaged is refused by name; its agents serve on',
  async (name) => {
    const path = join(fleet.server.dataDir, name);
    await fleet.server.stop();
    // What the write-ahead log has is in the file then.
    expect((await readdir(fleet.server.dataDir)).filter((file) => file === `${name}-wal`)).toEqual([]);
    await copyFile(path, `${path}.good`);
    await damage(path);
    const { failures } = await client.counts();
    const { code, stderr } = await fleet.server.refusedStart();
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(new RegExp(`${name}.*what to do: `, 's')) });
    expect(stderr).not.toMatch(/^\s+at /m);
    await flows();
    expect((await client.counts()).failures).toEqual(failures);
    await rename(`${path}.good`, path);
    await fleet.server.start();
    await fleet.linked();
  },
);

test('an agent whose view is gone or damaged has it again from the control plane', async () => {
  const { daemon } = fleet.agent();
  for (const ruin of [(path: string) => rm(path), damage]) {
    await daemon.stop(ruin === damage ? 'SIGTERM' : 'SIGKILL');
    const path = join(daemon.dataDir, 'view.db');
    for (const suffix of ['-wal', '-shm']) await rm(path + suffix, { force: true });
    await ruin(path);
    await daemon.start();
    await flows();
  }
  await until(
    () => daemon.problems(),
    (problems) => problems.every((text) => !text.startsWith('link')),
  );
});

test('an agent that knows nothing and whose control plane is away runs, says what it waits for, and is ready when that is back', async () => {
  const { daemon } = fleet.agent();
  await fleet.server.stop();
  await daemon.stop('SIGKILL');
  for (const suffix of ['', '-wal', '-shm']) await rm(join(daemon.dataDir, `view.db${suffix}`), { force: true });
  const config = join(daemon.dataDir, 'holdfast.yaml');
  await writeFile(config, 'readyTimeout: 2s\n');
  await daemon.start(/runs and is not ready yet \(agent\): .*log-consumer.*holdfast status/);
  const reasons = [/^link: no link .*connection refused/, /^log: changes do not arrive: .*connection refused/];
  await until(
    () => daemon.problems(),
    (all) => reasons.every((reason) => all.some((text) => reason.test(text))),
  );
  await rm(config);
  await fleet.server.start();
  await flows();
  await until(
    () => daemon.problems(),
    (all) => all.length === 0,
  );
});

test('K: a full disk under an agent: traffic goes on, effects are refused, reads are answered, and with room again all is well', async () => {
  const { nid, daemon } = fleet.agent();
  await daemon.stop('SIGKILL');
  const kept = `${daemon.dataDir}.kept`;
  await run('cp', ['-a', daemon.dataDir, kept]);
  await run('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', daemon.dataDir]);
  try {
    await run('cp', ['-a', `${kept}/.`, daemon.dataDir]);
    await daemon.start();
    await fleet.linked();
    await fleet.result(nid, 'GET_NODE_STATUS', {});
    await run('sh', ['-c', `cat /dev/zero > ${daemon.dataDir}/ballast || true`]);
    // The journal gives up its reserve first, so that what runs can finish.
    let refused = '';
    for (let number = 0; number < 300 && refused === ''; number++) {
      const { replyType, reply } = await fleet.result(nid, 'RUN_REMOTE_SCRIPT', { script: 'big' });
      if (replyType === 'ERROR') refused = String(reply);
      await run('sh', ['-c', `cat /dev/zero >> ${daemon.dataDir}/ballast || true`]);
    }
    expect(refused).toMatch(/^JOURNAL_UNAVAILABLE: /);
    expect(await fleet.result(nid, 'GET_NODE_STATUS', {})).toMatchObject({ replyType: 'NODE_STATUS' });
    const { failures } = await client.counts();
    await flows();
    expect((await client.counts()).failures).toEqual(failures);
    const { code, stdout } = await daemon.cli(['status']);
    expect({ code, stdout }).toEqual({ code: 4, stdout: expect.stringMatching(/journal|instructions/) });
    await rm(join(daemon.dataDir, 'ballast'));
    const result = () => fleet.result(nid, 'RUN_REMOTE_SCRIPT', { script: 'append.1' });
    await until(result, ({ reply }) => (reply as { response?: string }).response === '1\n');
    await until(
      () => daemon.problems(),
      (problems) => problems.length === 0,
      60_000,
    );
  } finally {
    await daemon.stop('SIGKILL');
    await run('umount', ['-l', daemon.dataDir]);
  }
});
