import { describe, expect, test } from 'vitest';
import { upgradeSteps } from '../../../src/domain/kubernetes/upgrade.js';
import type { Task } from '../../../src/ports/instruction/task-runner.js';
import type { ProgramEnd } from '../../fakes/fake-task-runner.js';
import { acknowledging, contentOf, InstructionWorld, type Process } from '../../support/instruction-rig.js';
import { PACKAGES } from '../../support/upgrade-rig.js';

const KEY = '-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQENBGMHoXcBCADu\n=oC67\n-----END PGP PUBLIC KEY BLOCK-----\n';
const KEY_URL = `${PACKAGES}/core:/stable:/v1.33/deb/Release.key`;
const ADMIN = '/etc/kubernetes/admin.conf';
const target = { targetKubernetesVersion: '1.33.4', kubeRepoVersion: 'v1.33', isFirstCp: true };

/** A node of a cluster, with dialogues as the documentation of its tools has them. */
class UpgradeWorld extends InstructionWorld {
  readonly packages = new Map([
    ['kubeadm', '1.32.1'],
    ['kubelet', '1.32.1'],
    ['kubectl', '1.32.1'],
    ['containerd.io', '1.7.20'],
  ]);
  readonly held = new Set(['kubeadm', 'kubelet', 'kubectl']);
  apiServer = '1.32.1';
  /** What the API server knows of the node. */
  node = { version: '1.32.1', ready: 'True' };
  readonly answers: string[] = [];
  /** In place of what a program does. */
  readonly instead = new Map<string, () => ProgramEnd | Promise<ProgramEnd>>();

  constructor({ isControlPlane = true } = {}) {
    super();
    if (isControlPlane) this.files.write(ADMIN, 'admin');
    this.web.serve(KEY_URL, KEY);
    this.units.install('kubelet.service', () => {
      this.node = { version: this.packages.get('kubelet') ?? '', ready: 'True' };
      return 'runs';
    });
    this.commands.program(['kubelet', '--version'], () => ({ stdout: `Kubernetes v${this.packages.get('kubelet')}\n` }));
    this.commands.program(['dpkg-query'], ({ argv }) => this.#query(argv.at(-1) ?? ''));
    this.commands.program(['dpkg', '--force-confdef'], {});
    this.commands.program(['apt-mark', 'showhold'], () => ({ stdout: [...this.held].map((name) => `${name}\n`).join('') }));
    this.commands.program(['apt-mark', 'hold'], ({ argv }) => this.#mark(argv.slice(2), true));
    this.commands.program(['apt-mark', 'unhold'], ({ argv }) => this.#mark(argv.slice(2), false));
    this.commands.program(['kubectl'], ({ argv }) =>
      argv.includes('/version')
        ? { stdout: JSON.stringify({ gitVersion: `v${this.apiServer}` }) }
        : { stdout: JSON.stringify(this.#node()) },
    );
    this.tasks.install('/usr/bin/env', (task) => this.#program(task));
  }

  async connect(): Promise<Process> {
    const process = await this.start();
    const session = acknowledging(process);
    const acknowledge = session.onSend;
    session.onSend = (message) => {
      this.answers.push(`${message.type} ${contentOf(message)}`);
      acknowledge?.(message);
    };
    process.connect(session);
    return process;
  }

  async upgraded(payload: object = target, ms = 0): Promise<Record<string, unknown>> {
    const process = await this.connect();
    process.deliver('UPGRADE_NODE_K8S', 't1', payload);
    await process.settle(ms);
    return this.answer();
  }

  answer(): Record<string, unknown> {
    expect(this.answers).toHaveLength(1);
    const [, type, text] = /^(\S+) (.*)$/.exec(this.answers[0] ?? '') ?? [];
    expect(type).toBe('UPGRADE_NODE_K8S_RESPONSE');
    return JSON.parse(text ?? '');
  }

  /** Programs with effects, in order. */
  programs(): readonly string[] {
    return this.tasks.started.map(({ argv }) => argv.slice(1).join(' '));
  }

  #program({ argv }: Task): ProgramEnd | Promise<ProgramEnd> {
    const text = argv.slice(1).join(' ');
    const known = [...this.instead].find(([part]) => text.includes(part));
    if (known !== undefined) return known[1]();
    for (const wanted of argv) {
      const [, name, version] = /^([a-z.]+)=([\d.]+)-\*$/.exec(wanted) ?? [];
      if (name !== undefined && version !== undefined) this.packages.set(name, version);
    }
    const apply = /^kubeadm upgrade apply v(\S+)/.exec(text);
    if (apply !== null) this.apiServer = apply[1] ?? '';
    return {};
  }

  #query(name: string) {
    const version = this.packages.get(name);
    return version === undefined ? { exitCode: 1, stderr: 'no packages found' } : { stdout: `ii  ${version}-1.1\n` };
  }

  #mark(names: readonly string[], hold: boolean) {
    for (const name of names) hold ? this.held.add(name) : this.held.delete(name);
    return {};
  }

  #node() {
    const { version, ready } = this.node;
    return { status: { nodeInfo: { kubeletVersion: `v${version}` }, conditions: [{ type: 'Ready', status: ready }] } };
  }
}

const LOCK = 'apt-get --option DPkg::Lock::Timeout=120';
const KEEP = '--option Dpkg::Options::=--force-confdef --option Dpkg::Options::=--force-confold';
const UPDATE_ONE =
  `${LOCK} --option Dir::Etc::sourcelist=/etc/apt/sources.list.d/kubernetes.list --option Dir::Etc::sourceparts=- ` +
  '--option APT::Get::List-Cleanup=0 --option APT::Update::Error-Mode=any update';
const STEPS = [
  UPDATE_ONE,
  `${LOCK} ${KEEP} install --yes kubeadm=1.33.4-*`,
  'kubeadm upgrade apply v1.33.4 --yes',
  `${LOCK} ${KEEP} install --yes kubelet=1.33.4-* kubectl=1.33.4-*`,
];

describe('the first control plane', () => {
  test('each step in order, with these arguments and no others', async () => {
    const world = new UpgradeWorld();
    expect(await world.upgraded()).toEqual({
      ...{ success: true, message: 'Kubernetes 1.33.4 runs on this node' },
      ...{ previousVersion: '1.32.1', newVersion: '1.33.4' },
    });
    expect(world.programs()).toEqual(STEPS);
    expect(world.units.restarts).toEqual(['kubelet.service']);
    expect([...world.held].sort()).toEqual(['kubeadm', 'kubectl', 'kubelet']);
    expect(world.files.text('/etc/apt/keyrings/kubernetes-apt-keyring.asc')).toBe(KEY);
    expect(world.files.text('/etc/apt/sources.list.d/kubernetes.list')).toContain(`${PACKAGES}/core:/stable:/v1.33/deb/ /`);
    expect(world.tasks.started[1]?.env.DEBIAN_FRONTEND).toBe('noninteractive');
    expect(world.commands.dump()).toContain(
      `kubectl --kubeconfig ${ADMIN} --server https://127.0.0.1:6443 --tls-server-name kubernetes --request-timeout=10s get --raw /version\n`,
    );
    const told = world.upgradeSaid.map((line) => line.split(' ')[1]?.replace(':', ''));
    expect(told.slice(1)).toEqual([...upgradeSteps]);
    expect(world.disk.dump()).toContain('UPGRADE_NODE_K8S acked 1 done');
  });

  test('everything there already: nothing is installed, and the node is asked all the same', async () => {
    const world = new UpgradeWorld();
    for (const name of world.packages.keys()) world.packages.set(name, '1.33.4');
    world.apiServer = '1.33.4';
    expect(await world.upgraded()).toMatchObject({ success: true, previousVersion: '1.33.4' });
    expect(world.programs()).toEqual([UPDATE_ONE]);
  });

  test('a package that is there and not held is held', async () => {
    const world = new UpgradeWorld();
    world.packages.set('kubeadm', '1.33.4');
    world.held.delete('kubeadm');
    expect(await world.upgraded()).toMatchObject({ success: true });
    expect(world.held.has('kubeadm')).toBe(true);
  });

  test.each([
    [90_000, true],
    [200_000, false],
  ])('a failed upgrade apply whose version the API server reports after %i ms: %s', async (ms, success) => {
    const world = new UpgradeWorld();
    world.instead.set('upgrade apply', () => {
      void world.clock.sleep(ms, { signal: new AbortController().signal }).then(() => {
        world.apiServer = '1.33.4';
      });
      return { exitCode: 1, stderr: 'error execution phase control-plane: timed out waiting for the condition\n' };
    });
    const answer = await world.upgraded(target, 150_000);
    expect(answer.success).toBe(success);
    if (success)
      expect(world.upgradeSaid).toContainEqual(expect.stringMatching(/^warning cluster: kubeadm upgrade apply failed, but/));
    else expect(answer.message).toMatch(/^step cluster: kubeadm refused or failed \(NA_KUBEADM\): .*timed out.*; what to do: /);
  });
});

describe('other nodes', () => {
  test('a worker upgrades its node, and reads itself with the certificate of its kubelet', async () => {
    const world = new UpgradeWorld({ isControlPlane: false });
    expect(await world.upgraded({ ...target, isFirstCp: false })).toMatchObject({ success: true });
    expect(world.programs()).toEqual(STEPS.map((step) => (step.startsWith('kubeadm') ? 'kubeadm upgrade node' : step)));
    expect(world.commands.dump()).toContain(
      'kubectl --kubeconfig /etc/kubernetes/kubelet.conf --request-timeout=10s get node node-1 --output json\n',
    );
    expect(world.commands.dump()).not.toContain('--server');
  });

  test('without a kubelet nothing begins', async () => {
    const world = new UpgradeWorld();
    world.commands.program(['kubelet', '--version'], { exitCode: 127, stderr: 'not found' });
    expect(await world.upgraded()).toMatchObject({
      success: false,
      message: expect.stringMatching(/step versions: .*no kubelet/),
    });
    expect(world.programs()).toEqual([]);
  });

  test('a way back is refused before anything runs', async () => {
    const world = new UpgradeWorld();
    world.packages.set('kubelet', '1.34.0');
    const answer = await world.upgraded();
    expect(answer).toMatchObject({
      success: false,
      previousVersion: '1.34.0',
      message: expect.stringMatching(/does not go back/),
    });
    expect([world.programs(), world.web.taken(), world.files.dump()]).toEqual([[], [], [ADMIN]]);
  });
});

describe('containerd and helm', () => {
  const both = { ...target, targetContainerdVersion: '1.7.27', targetHelmVersion: '3.18.3' };
  const archive = new TextEncoder().encode('tar');
  const digest = 'd5a6d25b37ebbcbe5a5ba1ae8a1d0a1b9e7d5f2e6c6e6c5bb5f3b6c1d5c0e8aa';
  const url = 'https://get.helm.sh/helm-v3.18.3-linux-amd64.tar.gz';

  test('are upgraded where they differ', async () => {
    const world = new UpgradeWorld();
    const { createHash } = await import('node:crypto');
    world.web.serve(url, archive);
    world.web.serve(
      `${url}.sha256sum`,
      `${createHash('sha256').update(archive).digest('hex')}  helm-v3.18.3-linux-amd64.tar.gz\n`,
    );
    world.commands.program(['/usr/local/bin/helm', 'version', '--short'], { stdout: 'v3.17.0+g1\n' });
    world.commands.program(['mv'], {});
    expect(await world.upgraded(both)).toMatchObject({ success: true });
    expect(world.programs().slice(4)).toEqual([
      `${LOCK} update`,
      `${LOCK} ${KEEP} install --yes containerd.io=1.7.27-*`,
      'tar --extract --gzip --file %f/helm.tar.gz --no-same-owner --directory /usr/local/bin --transform=s,.*,.helm.holdfast, linux-amd64/helm',
    ]);
    expect(world.commands.dump()).toContain(
      'mv --force --no-target-directory /usr/local/bin/.helm.holdfast /usr/local/bin/helm\n',
    );
  });

  test('another digest than the published one is not unpacked', async () => {
    const world = new UpgradeWorld();
    world.web.serve(url, archive);
    world.web.serve(`${url}.sha256sum`, `${digest}  x\n`);
    const answer = await world.upgraded({ ...target, targetHelmVersion: '3.18.3' });
    expect(answer).toMatchObject({ success: false, message: expect.stringMatching(/^step helm: .*not the published one/) });
    expect(world.programs()).toEqual(STEPS);
  });

  test('are left where they are the same, and containerd that is no package is not touched', async () => {
    const world = new UpgradeWorld();
    world.packages.set('containerd.io', '1.7.27');
    world.commands.program(['/usr/local/bin/helm', 'version', '--short'], { stdout: 'v3.18.3+g1\n' });
    expect(await world.upgraded(both)).toMatchObject({ success: true });
    expect(world.programs()).toEqual(STEPS);
    const other = new UpgradeWorld();
    other.packages.delete('containerd.io');
    expect(await other.upgraded(both)).toMatchObject({
      success: false,
      message: expect.stringMatching(/not installed as a package/),
    });
  });
});

describe('a failure names step, cause and remedy, and comes before anything is changed', () => {
  test('the server of packages is out of reach: after 5, 15 and 45 s', async () => {
    const world = new UpgradeWorld();
    world.web.serve(KEY_URL, 'gone', 503);
    const process = await world.connect();
    process.deliver('UPGRADE_NODE_K8S', 't1', target);
    await process.settle(64_000);
    expect(world.answers).toEqual([]);
    await process.settle(1_000);
    expect(world.web.taken()).toHaveLength(4);
    expect(world.answer()).toMatchObject({
      ...{ success: false, previousVersion: '1.32.1', newVersion: '1.32.1' },
      message: expect.stringMatching(/^step signing-key: outbound.failed: .*503; what to do: /),
    });
    expect(world.upgradeSaid.filter((line) => line.startsWith('warning'))).toHaveLength(3);
    expect(world.programs()).toEqual([]);
    expect(world.disk.dump()).toContain('UPGRADE_NODE_K8S acked 1 failed');
  });

  test('a proxy’s page is no signing key', async () => {
    const world = new UpgradeWorld();
    world.web.serve(KEY_URL, '<html>sign in</html>');
    expect(await world.upgraded()).toMatchObject({ success: false, message: expect.stringMatching(/serves no signing key/) });
    expect(world.files.dump()).toEqual([ADMIN]);
  });

  test('apt is locked for a while', async () => {
    const world = new UpgradeWorld();
    let tries = 0;
    world.instead.set('install --yes kubeadm', () => {
      tries += 1;
      if (tries < 3) return { exitCode: 100, stderr: 'E: Could not get lock /var/lib/dpkg/lock-frontend.\n' };
      world.packages.set('kubeadm', '1.33.4');
      return {};
    });
    expect(await world.upgraded(target, 20_000)).toMatchObject({ success: true });
    expect(tries).toBe(3);
  });

  test('a version that nobody has is asked for once, and the package is held again', async () => {
    const world = new UpgradeWorld();
    world.instead.set('install --yes kubeadm', () => ({
      exitCode: 100,
      stderr: "E: Version '1.33.4-*' for 'kubeadm' was not found\n",
    }));
    expect(await world.upgraded()).toMatchObject({
      success: false,
      message: expect.stringMatching(/^step kubeadm: .*\(NA_PKG_NOTFOUND\).*; what to do: choose a version/),
    });
    expect(world.programs()).toHaveLength(2);
    expect(world.held.has('kubeadm')).toBe(true);
  });

  test('version and Ready count together, for 5 min', async () => {
    const world = new UpgradeWorld();
    world.units.install('kubelet.service', () => {
      // The new version is there, and the old Ready is not for long.
      world.node = { version: '1.33.4', ready: 'False' };
      return 'runs';
    });
    const answer = await world.upgraded(target, 301_000);
    expect(answer).toMatchObject({ success: false, newVersion: '1.33.4', previousVersion: '1.32.1' });
    expect(answer.message).toMatch(/^step wait: after 5 min the node is not ready at 1.33.4 \(version 1.33.4, not ready\)/);
  });

  test('systemd refuses the restart', async () => {
    const world = new UpgradeWorld();
    world.units.install('kubelet.service', () => ({ refuses: 'Job failed' }));
    expect(await world.upgraded()).toMatchObject({
      success: false,
      message: expect.stringMatching(/^step restart: .*Job failed/),
    });
  });
});

describe('A8, by step: an agent killed in the middle', () => {
  test.each(upgradeSteps.map((step, index) => [step, index + 2] as const))(
    'after the commit of %s goes on there',
    async (step, nth) => {
      const world = new UpgradeWorld();
      const first = await world.connect();
      let commits = 0;
      first.journal.cut((changes) => {
        if (
          changes.some((change) =>
            JSON.stringify(change, (_, value) => (typeof value === 'bigint' ? String(value) : value)).includes(', from '),
          )
        )
          commits += 1;
        return commits === nth - 1 ? 'after' : undefined;
      });
      first.deliver('UPGRADE_NODE_K8S', 't1', target);
      await first.settle();
      expect(world.answers).toEqual([]);
      first.drop();
      const second = await world.connect();
      await second.settle();
      expect(world.answer()).toMatchObject({ success: true, previousVersion: '1.32.1', newVersion: '1.33.4' });
      // Each program ran once, over both lives.
      expect(world.programs()).toEqual(STEPS);
      expect(world.upgradeSaid).toContain(`info upgrade of Kubernetes from 1.32.1 to 1.33.4 goes on at ${step}`);
    },
  );

  test.each(['install --yes kubeadm', 'upgrade apply', 'install --yes kubelet'])(
    'in %s: the program goes on, and its end is learnt',
    async (program) => {
      const world = new UpgradeWorld();
      const never = new AbortController().signal;
      world.instead.set(program, async () => {
        await world.clock.sleep(60_000, { signal: never });
        if (program.includes('apply')) world.apiServer = '1.33.4';
        for (const name of ['kubeadm', 'kubelet', 'kubectl'])
          if (program.includes(name.slice(0, 7))) world.packages.set(name, '1.33.4');
        world.packages.set('kubectl', '1.33.4');
        return {};
      });
      const first = await world.connect();
      first.deliver('UPGRADE_NODE_K8S', 't1', target);
      await first.settle(10_000);
      first.journal.cut(() => 'before');
      first.drop();
      const second = await world.connect();
      await second.settle(60_000);
      expect(world.answer()).toMatchObject({ success: true });
      expect(world.programs().filter((text) => text.includes(program))).toHaveLength(1);
      expect([...world.held].sort()).toEqual(['kubeadm', 'kubectl', 'kubelet']);
    },
  );

  test('a power cut in the middle of apt: dpkg is repaired first, then it runs again', async () => {
    const world = new UpgradeWorld();
    let runs = 0;
    world.instead.set('install --yes kubeadm', async () => {
      runs += 1;
      if (runs === 1) await world.clock.sleep(1e9, { signal: new AbortController().signal });
      world.packages.set('kubeadm', '1.33.4');
      return {};
    });
    const first = await world.connect();
    first.deliver('UPGRADE_NODE_K8S', 't1', target);
    await first.settle(10_000);
    await first.engine.stop();
    first.drop();
    for (const { id } of world.tasks.started) world.tasks.interrupt(id);
    const second = await world.connect();
    await second.settle();
    expect(world.answer()).toMatchObject({ success: true });
    expect(runs).toBe(2);
    expect(world.commands.dump()).toContain('dpkg --force-confdef --force-confold --configure --pending\n');
  });

  test('a kubeadm whose runner dies each time is a failure and no loop', async () => {
    const world = new UpgradeWorld();
    world.instead.set('upgrade apply', () => {
      queueMicrotask(() => {
        for (const { id } of world.tasks.started) world.tasks.interrupt(id);
      });
      return new Promise(() => {});
    });
    expect(await world.upgraded(target, 121_000)).toMatchObject({
      success: false,
      message: expect.stringMatching(/^step cluster: .*interrupted/),
    });
    expect(world.programs().filter((text) => text.includes('apply'))).toHaveLength(2);
  });
});

test('cancelled: no further step begins, and the answer keeps its form', async () => {
  const world = new UpgradeWorld();
  world.instead.set('upgrade apply', async () => {
    await world.clock.sleep(60_000, { signal: new AbortController().signal });
    return {};
  });
  const process = await world.connect();
  process.deliver('UPGRADE_NODE_K8S', 't1', target);
  await process.settle(1_000);
  process.deliver('CANCEL', 't2', { tag: 't1' });
  await process.settle(120_000);
  const answer = world.answers.find((text) => text.startsWith('UPGRADE_NODE_K8S_RESPONSE'));
  expect(answer).toMatch(/"success":false,"message":"CANCELLED/);
  expect(world.programs()).toEqual(STEPS.slice(0, 3));
});

test('an agent that starts again keeps the end of a step that came while there was none', async () => {
  const world = new UpgradeWorld();
  world.instead.set('upgrade node', async () => {
    await world.clock.sleep(60_000, { signal: new AbortController().signal });
    return {};
  });
  const first = await world.connect();
  first.deliver('UPGRADE_NODE_K8S', 't1', { ...target, isFirstCp: false });
  await first.settle(10_000);
  await first.engine.stop();
  await world.clock.advance(60_000);
  const second = await world.connect();
  await second.settle();
  expect(world.answer()).toMatchObject({ success: true });
  expect(world.programs().filter((text) => text === 'kubeadm upgrade node')).toHaveLength(1);
  // Then nobody needs it any more.
  await second.settle(3_700_000);
  expect(world.tasks.dump()).toBe('');
});
