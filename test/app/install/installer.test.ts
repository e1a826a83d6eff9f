import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { Installer } from '../../../src/app/install/installer.js';
import { StepTasks } from '../../../src/app/kubernetes/step-tasks.js';
import type { InstallCommand } from '../../../src/domain/install/model.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import type { AbsolutePath } from '../../../src/domain/kernel/paths.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeMachineFiles } from '../../fakes/fake-machine-files.js';
import { FakeNodewardCalls } from '../../fakes/fake-nodeward-calls.js';
import { FakeTaskRunner, type ProgramEnd } from '../../fakes/fake-task-runner.js';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const NEVER = new AbortController().signal;
const PLACE = '/data/install/place.json' as AbsolutePath;
const command = (id: number, text: string, more: Partial<InstallCommand> = {}): InstallCommand => ({
  ...{ id, command: text, after: 0, matches: '', doesNotMatch: '', ignoreFailure: false },
  ...more,
});

/** What outlives a process of `holdfast install`. */
class Machine {
  readonly clock = new FakeClock();
  readonly files = new FakeMachineFiles();
  readonly calls = new FakeNodewardCalls();
  readonly logger = new FakeLogger();
  readonly tasks = new FakeTaskRunner({}, this.clock);
  readonly ran: string[] = [];
  readonly told: string[] = [];
  /** What a command does, other than nothing. */
  readonly does = new Map<string, () => ProgramEnd | Promise<ProgramEnd>>();

  constructor() {
    this.tasks.install('/usr/bin/env', ({ argv, files }) => {
      expect(argv).toEqual(['/usr/bin/env', 'bash', '%f/command']);
      const text = new TextDecoder().decode(files.command);
      this.ran.push(text);
      return this.does.get(text)?.() ?? {};
    });
  }

  /** Its end, as text, when so much time has passed. */
  async run(ms = 0, signal = NEVER): Promise<string> {
    const { clock, calls, logger, files } = this;
    const tasks = new StepTasks({ tasks: this.tasks, clock, sha256, env: {} });
    const tell = (line: string) => void this.told.push(line);
    const installer = new Installer({ calls, tasks, files, place: PLACE, clock, logger, sha256, tell });
    let end = 'runs';
    void installer.run({ signal }).then(
      ({ commands, resumedAt }) => {
        end = `done ${commands} from ${resumedAt}`;
      },
      (error: unknown) => {
        end = error instanceof Error ? error.message : String(error);
      },
    );
    for (let round = 0; round < 100; round++) await clock.advance(0);
    if (ms > 0) await clock.advance(ms);
    for (let round = 0; round < 100; round++) await clock.advance(0);
    return end;
  }
}

function refusing(machine: Machine, problem: string, code: 'link.refused' | 'link.unreachable' = 'link.refused'): () => void {
  const { calls } = machine;
  const original = calls.installCommands.bind(calls);
  calls.installCommands = () => Promise.reject(new AgentError(code, { problem }));
  return () => {
    calls.installCommands = original;
  };
}

test('statuses are told and not run, progress is shown, the rest runs in order', async () => {
  const machine = new Machine();
  machine.calls.commands = [
    command(1, 'echo STATUS_UPDATE:INSTALLING'),
    command(2, 'apt-get install x'),
    command(3, 'echo PROGRESS_UPDATE:50%'),
    command(4, 'systemctl is-active y'),
    command(5, 'only if active', { after: 4, matches: '^active$' }),
    command(6, 'only if not', { after: 4, doesNotMatch: 'active' }),
    command(7, 'after what did not run', { after: 6 }),
  ];
  machine.does.set('systemctl is-active y', () => ({ stdout: 'active\n' }));
  machine.does.set('apt-get install x', () => ({ stdout: 'ok\nNODELOG_WARN: swap is on\n' }));
  expect(await machine.run()).toBe('done 7 from 0');
  expect(machine.ran).toEqual(['apt-get install x', 'systemctl is-active y', 'only if active']);
  expect(machine.calls.told).toEqual([
    'updateStatus {"status":"INSTALLING"}',
    'addNodelog {"severity":"warning","type":"INSTALL","message":"swap is on","code":"","cause":"","remedy":"","docsUrl":""}',
  ]);
  expect(machine.told).toContain('50 %');
  expect(await machine.run()).toBe('done 7 from 7');
  expect(machine.ran).toHaveLength(3);
});

describe('failures', () => {
  test('one that may fail is a warning, costs one try, and the list goes on', async () => {
    const machine = new Machine();
    machine.calls.commands = [command(1, 'a', { ignoreFailure: true }), command(2, 'b')];
    machine.does.set('a', () => ({ exitCode: 1, stderr: 'curl: (6) Could not resolve host: x\n' }));
    expect(await machine.run()).toBe('done 2 from 0');
    expect(machine.ran).toEqual(['a', 'b']);
    expect(machine.calls.told).toEqual([expect.stringMatching(/^addNodelog \{"severity":"warning",.*"code":"NA_NET_UNREACH"/)]);
  });

  test('another one ends it: INSTALL_ERROR and one line with code, cause and remedy, without its output; mended, it runs again', async () => {
    const machine = new Machine();
    machine.calls.commands = [command(1, 'a'), command(2, 'b')];
    machine.does.set('a', () => ({ exitCode: 1, stdout: 'token s3cret\n', stderr: 'E: Unable to locate package x\n' }));
    expect(await machine.run()).toMatch(/^install.failed: command 1 ended with 1: .* \(NA_PKG_NOTFOUND\)$/);
    const [status, line, ...more] = machine.calls.told;
    expect(status).toBe('updateStatus {"status":"INSTALL_ERROR"}');
    expect(line).toMatch(/"severity":"failure",.*"code":"NA_PKG_NOTFOUND","cause":"[^"]+","remedy":"choose a version/);
    expect(more).toEqual([]);
    expect(machine.calls.told.join()).not.toContain('s3cret');
    machine.does.delete('a');
    expect(await machine.run()).toBe('done 2 from 0');
    expect(machine.ran).toEqual(['a', 'a', 'b']);
  });

  test('what passes is tried after 5, 15 and 45 s', async () => {
    const machine = new Machine();
    machine.calls.commands = [command(1, 'a')];
    let tries = 0;
    machine.does.set('a', () => (++tries < 4 ? { exitCode: 100, stderr: 'E: Could not get lock /x\n' } : {}));
    expect(await machine.run(65_000)).toBe('done 1 from 0');
    expect(tries).toBe(4);
  });

  test('a command that hangs is ended after 30 min', async () => {
    const machine = new Machine();
    machine.calls.commands = [command(1, 'a', { ignoreFailure: true })];
    machine.does.set('a', () => new Promise(() => {}));
    expect(await machine.run(30 * 60_000)).toBe('done 1 from 0');
    expect(machine.told).toContainEqual(expect.stringMatching(/took too long/));
  });

  test('a list that cannot be used is told before its first command', async () => {
    const machine = new Machine();
    machine.calls.commands = [command(1, 'a'), command(1, 'b')];
    expect(await machine.run()).toMatch(/^install.failed: .*command 1 is there twice/);
    expect(machine.ran).toEqual([]);
    expect(machine.calls.told.filter((line) => line.includes('INSTALL_ERROR'))).toHaveLength(1);
  });

  test('the control plane that cannot be told anything does not hold it up', async () => {
    const machine = new Machine();
    machine.calls.commands = [command(1, 'echo STATUS_UPDATE:X'), command(2, 'a', { ignoreFailure: true })];
    machine.does.set('a', () => ({ exitCode: 1 }));
    machine.calls.updateStatus = () => Promise.reject(new AgentError('link.unreachable', { problem: 'gone' }));
    machine.calls.addNodelog = () => Promise.reject(new AgentError('link.unreachable', { problem: 'gone' }));
    expect(await machine.run()).toBe('done 2 from 0');
  });
});

describe('the list', () => {
  test('WAIT_FOR_CONTROL_PLANE: asked for every 15 s', async () => {
    const machine = new Machine();
    machine.calls.commands = [command(1, 'a')];
    const end = refusing(machine, 'WAIT_FOR_CONTROL_PLANE: none is ready');
    const before = machine.run(60_000);
    expect(await before).toBe('runs');
    end();
    await machine.clock.advance(15_000);
    expect(machine.ran).toEqual(['a']);
    expect(machine.told).toHaveLength(5);
  });

  test.each(['link.refused', 'link.unreachable'] as const)('for 30 min, then it is INSTALL_ERROR (%s)', async (code) => {
    const machine = new Machine();
    refusing(machine, 'WAIT_FOR_CONTROL_PLANE: none is ready', code);
    expect(await machine.run(30 * 60_000)).toMatch(new RegExp(`^${code}: WAIT_FOR`));
    expect(machine.calls.told[0]).toBe('updateStatus {"status":"INSTALL_ERROR"}');
  });

  test('any other refusal ends it at once, and is told', async () => {
    const machine = new Machine();
    refusing(machine, 'no install plan is configured on this control plane');
    expect(await machine.run()).toMatch(/^link.refused: no install plan/);
    expect(machine.calls.told).toHaveLength(2);
  });
});

describe('the first node of a cluster', () => {
  const list = [command(1, 'echo STATUS_UPDATE:INITIALIZING_NEW_CLUSTER'), command(2, 'kubeadm init')];
  test.each([
    ['FIRST_NODE_CLAIM_RELEASED: n2 has it', 'link.refused', /another node begins it \(FIRST_NODE_CLAIM_NOT_CONFIRMED\)/],
    ['gone', 'link.unreachable', /has not confirmed.*\(FIRST_NODE_CLAIM_NOT_CONFIRMED\)/],
  ] as const)('without a yes it begins none: %s', async (problem, code, expected) => {
    const machine = new Machine();
    machine.calls.commands = list;
    const original = machine.calls.updateStatus.bind(machine.calls);
    machine.calls.updateStatus = (status, options) =>
      status === 'INITIALIZING_NEW_CLUSTER' ? Promise.reject(new AgentError(code, { problem })) : original(status, options);
    expect(await machine.run()).toMatch(expected);
    expect(machine.ran).toEqual([]);
    machine.calls.updateStatus = original;
    // Asked again, and not taken for said.
    expect(await machine.run()).toBe('done 2 from 0');
    expect(machine.calls.told).toContain('updateStatus {"status":"INITIALIZING_NEW_CLUSTER"}');
  });
});

test('stopped right before it begins a cluster, it asks again whether it may', async () => {
  const machine = new Machine();
  machine.calls.commands = [command(1, 'echo STATUS_UPDATE:INITIALIZING_NEW_CLUSTER'), command(2, 'kubeadm init')];
  machine.files.dieBefore(2);
  machine.does.set('kubeadm init', () => ({ exitCode: 1, stderr: 'error execution phase preflight' }));
  expect(await machine.run()).toMatch(/died/);
  machine.files.revive();
  machine.does.delete('kubeadm init');
  machine.calls.told.splice(0);
  expect(await machine.run()).toMatch(/NA_KUBEADM/);
  expect(machine.calls.told[0]).toBe('updateStatus {"status":"INITIALIZING_NEW_CLUSTER"}');
  expect(await machine.run()).toBe('done 2 from 1');
});

describe('A8, by step: killed and run again', () => {
  test.each([1, 2, 3, 4, 5])('before its %i. write', async (write) => {
    const machine = new Machine();
    machine.calls.commands = [1, 2, 3, 4, 5].map((id) => command(id, `c${id}`));
    machine.files.dieBefore(write);
    expect(await machine.run()).toMatch(/died/);
    machine.files.revive();
    expect(await machine.run()).toBe(`done 5 from ${write - 1}`);
    expect(machine.ran).toEqual(['c1', 'c2', 'c3', 'c4', 'c5']);
  });

  test('while a command runs: its end is learnt', async () => {
    const machine = new Machine();
    machine.calls.commands = [command(1, 'a'), command(2, 'b')];
    machine.does.set('a', async () => {
      await machine.clock.sleep(60_000, { signal: NEVER });
      return {};
    });
    const killed = new AbortController();
    expect(await machine.run(1_000, killed.signal)).toBe('runs');
    killed.abort(new Error('killed'));
    expect(await machine.run(60_000)).toBe('done 2 from 0');
    expect(machine.ran).toEqual(['a', 'b']);
  });

  test('another list begins anew, and says so; a damaged place as well', async () => {
    const machine = new Machine();
    machine.calls.commands = [command(1, 'a')];
    await machine.run();
    machine.calls.commands = [command(1, 'a'), command(2, 'b')];
    expect(await machine.run()).toBe('done 2 from 0');
    expect(machine.told).toContainEqual(expect.stringMatching(/another list/));
    machine.files.write(PLACE, '{"digest":');
    machine.calls.commands = [command(3, 'c')];
    expect(await machine.run()).toBe('done 1 from 0');
    expect(machine.ran).toEqual(['a', 'a', 'b', 'c']);
  });
});
