import { describe, expect, test } from 'vitest';
import { acknowledging, contentOf, InstructionWorld } from '../../support/instruction-rig.js';

const payload = { repoUrl: 'https://charts.test', myRepoName: 'r', myChartName: 'web', chartName: 'nginx', namespace: 'ns' };
const row = (revision: number, status: string, updated = '2026-12-01 01:02:03.4567 +0000 UTC') => ({
  ...{ name: 'web', namespace: 'ns', revision: String(revision), updated, status, chart: 'nginx-1.2.3', app_version: '1' },
});

class HelmWorld extends InstructionWorld {
  /** What `helm list` and `helm history` show. */
  releases: object[] = [];
  history: object[] = [];
  /** What `helm upgrade` does. */
  upgrade: () => Promise<{ exitCode?: number; stdout?: string; stderr?: string }> = async () => ({ stdout: 'installed\n' });

  constructor() {
    super();
    this.commands.program(['helm', 'list'], () => ({ stdout: JSON.stringify(this.releases) }));
    this.commands.program(['helm', 'history'], () => ({ stdout: JSON.stringify(this.history) }));
    this.commands.program(['helm', 'rollback'], {});
    this.commands.program(['helm', 'uninstall'], { stdout: 'release "web" uninstalled\n' });
    this.tasks.install('/usr/bin/env', () => this.upgrade());
  }

  async answer(type: string, content: object) {
    const process = await this.start();
    const session = process.connect(acknowledging(process));
    process.deliver(type, 't1', content);
    await process.settle();
    return session.sent.map((message) => `${message.type} ${contentOf(message)}`);
  }
}

describe('INSTALL_HELM_CHART', () => {
  test('one task, with a folder of its own and the values that were fetched here', async () => {
    const world = new HelmWorld();
    world.web.serve('https://values.test/v.yaml', 'a: 1\n');
    const said = await world.answer('INSTALL_HELM_CHART', { ...payload, valuesUrl: 'https://values.test/v.yaml' });
    expect(said).toEqual(['INSTALL_HELM_CHART_RESPONSE {"response":"installed\\n"}']);
    const [task] = world.tasks.started;
    expect(task?.argv.slice(0, 5)).toEqual(['/usr/bin/env', 'helm', 'upgrade', '--install', 'web']);
    expect(new TextDecoder().decode(task?.files['values.yaml'])).toBe('a: 1\n');
    expect(task?.env.KUBECONFIG).toBe('/etc/kubernetes/admin.conf');
  });

  test('a failure has its own form, and counts as one', async () => {
    const world = new HelmWorld();
    world.upgrade = async () => ({ exitCode: 1, stderr: 'Error: chart "nginx" not found\n' });
    expect(await world.answer('INSTALL_HELM_CHART', payload)).toEqual([
      'INSTALL_HELM_CHART_ERROR {"response":"helm: exit code 1: Error: chart \\"nginx\\" not found"}',
    ]);
    expect(world.disk.dump()).toContain('INSTALL_HELM_CHART acked 1 failed');
  });

  test.each([
    ['https://127.0.0.1/charts', '127.0.0.1 is loopback'],
    ['oci://169.254.169.254/x', '169.254.169.254 is a metadata service'],
    ['https://localhost/x', 'localhost is this machine'],
  ])('the guard refuses %s before helm runs', async (repoUrl, reason) => {
    const world = new HelmWorld();
    expect(await world.answer('INSTALL_HELM_CHART', { ...payload, repoUrl })).toEqual([`ERROR outbound.refused: ${reason}`]);
    expect(world.tasks.started).toEqual([]);
  });

  test('a release that a dead helm holds is rolled back first', async () => {
    const world = new HelmWorld();
    world.releases = [row(3, 'pending-upgrade', '2020-01-01 00:00:00 +0000 UTC')];
    world.history = [row(1, 'superseded'), row(2, 'deployed'), row(3, 'pending-upgrade')];
    await world.clock.advance(0);
    expect(await world.answer('INSTALL_HELM_CHART', payload)).toEqual([
      'INSTALL_HELM_CHART_RESPONSE {"response":"installed\\n"}',
    ]);
    expect(world.commands.dump()).toContain('helm rollback web 2 --namespace ns\n');
  });

  test('A4, A8: helm goes on when the agent dies, and the next one learns its end', async () => {
    const world = new HelmWorld();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    world.upgrade = async () => {
      await ended;
      return { stdout: 'installed\n' };
    };
    const first = await world.start();
    first.connect(acknowledging(first));
    first.deliver('INSTALL_HELM_CHART', 't1', payload);
    await first.settle();
    const second = await world.start();
    const session = second.connect(acknowledging(second));
    resolve();
    await second.settle();
    expect(session.of('t1').map(contentOf)).toEqual(['{"response":"installed\\n"}']);
    expect(world.tasks.started).toHaveLength(1);
  });

  test.each([
    ['had finished', [row(1, 'deployed')], 'release web in ns is deployed: revision 1, chart nginx-1.2.3', ''],
    ['had died half-way', [row(1, 'pending-install')], 'installed\\n', 'helm uninstall web --namespace ns\n'],
    ['had not begun', [], 'installed\\n', ''],
  ])('A8: after a power cut, when helm %s', async (_, releases, response, recovered) => {
    const world = new HelmWorld();
    world.upgrade = () => new Promise(() => {});
    const first = await world.start();
    first.connect(acknowledging(first));
    first.deliver('INSTALL_HELM_CHART', 't1', payload);
    await first.settle();
    for (const { id } of world.tasks.started) world.tasks.interrupt(id);
    world.releases = releases;
    world.history = releases;
    world.upgrade = async () => ({ stdout: 'installed\n' });
    const second = await world.start();
    const session = second.connect(acknowledging(second));
    await second.settle();
    expect(session.of('t1').map(contentOf)).toEqual([`{"response":"${response}"}`]);
    expect(world.commands.dump()).toContain(recovered);
  });
});

describe('UNINSTALL_HELM_CHART', () => {
  const release = { myRepoName: 'r', myChartName: 'web', namespace: 'ns' };

  test('says what helm said', async () => {
    const said = await new HelmWorld().answer('UNINSTALL_HELM_CHART', release);
    expect(said).toEqual(['UNINSTALL_HELM_CHART_RESPONSE {"response":"release \\"web\\" uninstalled\\n"}']);
  });

  test('absent is success, and everything else is not', async () => {
    const world = new HelmWorld();
    world.commands.program(['helm', 'uninstall'], { exitCode: 1, stderr: 'Error: release: not found' });
    expect(await world.answer('UNINSTALL_HELM_CHART', release)).toEqual([
      'UNINSTALL_HELM_CHART_RESPONSE {"response":"release web in ns is not there"}',
    ]);
    world.commands.program(['helm', 'uninstall'], { exitCode: 1, stderr: 'Error: unreachable' });
    const again = await world.start();
    const session = again.connect(acknowledging(again));
    again.deliver('UNINSTALL_HELM_CHART', 't2', release);
    await again.settle();
    expect(session.of('t2').map(({ type }) => type)).toEqual(['UNINSTALL_HELM_CHART_ERROR']);
  });
});
