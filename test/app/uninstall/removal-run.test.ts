import { describe, expect, test } from 'vitest';
import { DnsmasqRemover } from '../../../src/app/dnsmasq/dnsmasq-remover.js';
import { RemovalRun } from '../../../src/app/uninstall/removal-run.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { type AbsolutePath, makePaths } from '../../../src/domain/kernel/paths.js';
import { planRemoval } from '../../../src/domain/uninstall/plan.js';
import type { Task, TaskId } from '../../../src/ports/instruction/task-runner.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeCommandRunner } from '../../fakes/fake-command-runner.js';
import { FakeDnsmasqConfig } from '../../fakes/fake-dnsmasq-config.js';
import { FakeOverlayDevice } from '../../fakes/fake-overlay-device.js';
import { FakeSysctls } from '../../fakes/fake-sysctls.js';
import { FakeTaskRunner } from '../../fakes/fake-task-runner.js';
import { FakeTraces } from '../../fakes/fake-traces.js';
import { FakeUnits } from '../../fakes/fake-units.js';

const options = { signal: new AbortController().signal };
const root = '/' as AbsolutePath;
const paths = makePaths({ root, dataDir: '/d' as AbsolutePath });
const steps = planRemoval({ paths, root }, 'uninstall');
const FOREIGN = [
  '/d/notes.txt',
  '/etc/systemd/system/other.service',
  '/etc/cni/net.d/10-other.conflist',
  '/etc/dnsmasq.d/other.conf',
];
const OWN = ['/d/certs/ca.crt', '/d/journal.db', '/d/journal.db-wal', '/d/node-identity.json', '/d/lock', '/d/overlay.key'];

/** A machine with a node on it: it outlives each run. */
class Machine {
  readonly commands = new FakeCommandRunner();
  readonly traces = new FakeTraces([...OWN, ...FOREIGN, '/etc/systemd/system/holdfast-agent.service']);
  readonly clock = new FakeClock();
  readonly tasks = new FakeTaskRunner({ '/bin/sleep': () => new Promise(() => {}) }, this.clock);
  readonly overlay = new FakeOverlayDevice();
  readonly dnsmasq = new FakeDnsmasqConfig();
  readonly units = new FakeUnits(this.clock);
  readonly sysctls = new FakeSysctls({ 'net.ipv4.ip_forward': '0' });
  hasRules = true;
  readonly packetFilter = {
    remove: async () => {
      this.hasRules = false;
    },
  };
  held: unknown;

  constructor() {
    for (const name of ['systemctl', 'test', 'ip', 'kubeadm', 'umount']) this.commands.program([name], {});
    this.commands.program(['umount'], ({ argv }) => {
      this.traces.mounts.delete(argv.at(-1) ?? '');
      return {};
    });
  }

  run(): RemovalRun {
    const { commands, traces, tasks, overlay, dnsmasq, units } = this;
    const hold = async () => {
      if (this.held !== undefined) throw this.held;
    };
    const { packetFilter, sysctls } = this;
    const remover = new DnsmasqRemover(dnsmasq, units);
    return new RemovalRun({ commands, traces, tasks, overlay, packetFilter, sysctls, dnsmasq: remover, hold });
  }

  async carryOut({ evenState = false, diesAfter = Number.POSITIVE_INFINITY } = {}) {
    let left = diesAfter;
    const told = () => {
      left -= 1;
      if (left <= 0) throw new Error('killed');
    };
    return this.run().carryOut(steps, { evenState, told }, options);
  }
}

const task: Task = {
  ...{ id: 'a' as TaskId, argv: ['/bin/sleep', '9'], env: {}, cwd: '/', files: {} },
  ...{ timeoutMs: 60_000, maxOutputBytes: 100 },
};

test('removes what is ours, and nothing else', async () => {
  const machine = new Machine();
  void machine.tasks.run(task, options).catch(() => {});
  await machine.sysctls.set(new Map([['net.ipv4.ip_forward', '1']]), options);
  machine.traces.mounts.add('/var/lib/kubelet/pods/1/v').add('/var/lib/kubelet/pods/1/v/deeper').add('/mnt/foreign');
  const outcomes = await machine.carryOut();
  expect(outcomes.filter(({ problem }) => problem !== undefined)).toEqual([]);
  expect(machine.traces.dump()).toEqual([...FOREIGN].sort());
  expect([...machine.traces.mounts]).toEqual(['/mnt/foreign']);
  expect(machine.tasks.dump()).toBe('a exited');
  expect([machine.hasRules, machine.sysctls.dump()]).toEqual([false, 'net.ipv4.ip_forward = 0']);
  expect(machine.commands.dump()).toContain(
    'umount --lazy -- /var/lib/kubelet/pods/1/v/deeper\numount --lazy -- /var/lib/kubelet/pods/1/v\n',
  );
});

test.each(steps.map((step, at) => [at + 1, step.what] as const))(
  'killed after step %i (%s) and begun anew it ends the same',
  async (at) => {
    const machine = new Machine();
    await expect(machine.carryOut({ diesAfter: at })).rejects.toThrow('killed');
    const outcomes = await machine.carryOut();
    expect(outcomes.filter(({ problem }) => problem !== undefined)).toEqual([]);
    expect(machine.traces.dump()).toEqual([...FOREIGN].sort());
  },
);

test('on a machine without kubeadm, systemd and ip everything else goes: what they made is not there either', async () => {
  const machine = new Machine();
  const bare = new FakeCommandRunner();
  Object.assign(machine, { commands: bare });
  const outcomes = await machine.carryOut();
  expect(outcomes.filter(({ problem }) => problem !== undefined)).toEqual([]);
  expect(machine.traces.dump()).toEqual([...FOREIGN].sort());
});

describe('a step that fails', () => {
  test('holds up no other, is named, and the state stays, by which the rest is known', async () => {
    const machine = new Machine();
    machine.commands.program(['kubeadm'], { exitCode: 1, stderr: 'etcd is away' });
    machine.overlay.fail('overlay.unreadable');
    const outcomes = await machine.carryOut();
    expect(outcomes.flatMap(({ problem }) => problem ?? [])).toEqual([
      'kubeadm reset --force: etcd is away',
      'overlay.unreadable: told to fail',
      'it stays, since something else could not be removed',
    ]);
    expect(machine.traces.dump()).toContain('/d/node-identity.json');
    machine.commands.program(['kubeadm'], {});
    machine.overlay.fail(undefined);
    await machine.carryOut();
    expect(machine.traces.dump()).toEqual([...FOREIGN].sort());
  });

  test('keeps no identity where the machine starts anew: the next install would be refused', async () => {
    const machine = new Machine();
    machine.commands.program(['kubeadm'], { exitCode: -1, timedOut: true });
    const outcomes = await machine.carryOut({ evenState: true });
    expect(outcomes.flatMap(({ problem }) => problem ?? [])).toEqual(['kubeadm reset --force: it took too long']);
    expect(machine.traces.dump()).toEqual([...FOREIGN].sort());
  });

  test('nothing is removed while a daemon runs', async () => {
    const machine = new Machine();
    machine.held = new AgentError('agent.data_dir_locked', { problem: 'another daemon runs on /d' });
    const before = machine.traces.dump();
    const outcomes = await machine.carryOut({ evenState: true });
    expect(outcomes.at(-1)?.step.do).toBe('hold_data_dir');
    expect(machine.traces.dump()).toEqual(before);
  });

  test('a mount that does not go is named', async () => {
    const machine = new Machine();
    machine.commands.program(['umount'], { exitCode: 32 });
    machine.traces.mounts.add('/var/lib/kubelet/v');
    const outcomes = await machine.carryOut();
    expect(outcomes.flatMap(({ problem }) => problem ?? [])[0]).toBe('still mounted: /var/lib/kubelet/v');
  });
});

describe('the configuration of dnsmasq', () => {
  async function placed(machine: Machine, text: string): Promise<void> {
    machine.dnsmasq.write(text);
    const found = await machine.dnsmasq.read(options);
    if (found === undefined) throw new Error('nothing placed');
    const { digest, mark } = found;
    const served = { digest, mark, boot: 'b', startedAt: 1n };
    await machine.dnsmasq.remember({ served, unfinished: undefined }, options);
  }

  test('goes when it is as this node has placed it', async () => {
    const machine = new Machine();
    await placed(machine, 'no-resolv\n');
    await machine.carryOut();
    expect(machine.dnsmasq.text()).toBeUndefined();
  });

  test('stays when somebody has changed it, or nothing is remembered of it', async () => {
    const machine = new Machine();
    await placed(machine, 'no-resolv\n');
    machine.dnsmasq.write('no-resolv\n# mine\n');
    await machine.carryOut();
    expect(machine.dnsmasq.text()).toBe('no-resolv\n# mine\n');
    const other = new Machine();
    other.dnsmasq.write('no-hosts\n');
    await other.carryOut();
    expect(other.dnsmasq.text()).toBe('no-hosts\n');
  });
});
