import { describe, expect, test } from 'vitest';
import { MachineEnd } from '../../../src/app/uninstall/machine-end.js';
import { RemovalLauncher } from '../../../src/app/uninstall/removal-launcher.js';
import { RemovalOrders } from '../../../src/app/uninstall/removal-orders.js';
import { USUAL_POLICY } from '../../../src/domain/instruction/policy.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import type { AbsolutePath } from '../../../src/domain/kernel/paths.js';
import type { Task, TaskId } from '../../../src/ports/instruction/task-runner.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeCommandRunner } from '../../fakes/fake-command-runner.js';
import { FakeMachineFiles } from '../../fakes/fake-machine-files.js';
import { FakeTaskRunner } from '../../fakes/fake-task-runner.js';
import { FakeTraces } from '../../fakes/fake-traces.js';
import { acknowledging, FakeSession, InstructionWorld } from '../../support/instruction-rig.js';

const options = { signal: new AbortController().signal };
const folder = '/data.removal' as AbsolutePath;
const open = { ...USUAL_POLICY, deny: [] };

describe('UNINSTALL_NODE, REINSTALL_NODE', () => {
  test('A16b: answered first, and started when the answer is confirmed', async () => {
    const world = new InstructionWorld();
    const process = await world.start();
    const session = process.connect(new FakeSession());
    process.deliver('UNINSTALL_NODE', 't1', '');
    await process.settle();
    expect(session.dump()).toBe('t1 NO_CONTENT {}');
    expect(world.launched).toEqual([]);
    expect(world.files.text(`${folder}/order.json`)).toMatch(/"kind":"uninstall".*"stage":"removing"/);
    await process.settle(5_000);
    expect(world.launched).toHaveLength(1);
  });

  test('A16b: started also if the link has died meanwhile', async () => {
    const world = new InstructionWorld();
    const process = await world.start();
    process.connect(new FakeSession());
    process.deliver('UNINSTALL_NODE', 't1');
    await process.settle();
    process.drop();
    await process.settle(5_000);
    expect(world.launched).toHaveLength(1);
  });

  test('whatever is sent along is ignored', async () => {
    const world = new InstructionWorld();
    const process = await world.start();
    const session = process.connect(acknowledging(process));
    process.deliver('UNINSTALL_NODE', 't1', [1, 'x']);
    await process.settle();
    expect(session.dump()).toBe('t1 NO_CONTENT {}');
  });

  test('A8: an order that cannot be written is an error, and nothing starts', async () => {
    const world = new InstructionWorld();
    const process = await world.start();
    const session = process.connect(acknowledging(process));
    world.files.failNext(new AgentError('adoption.file_failed', { problem: 'the disk is full' }));
    process.deliver('UNINSTALL_NODE', 't1');
    await process.settle(10_000);
    expect(session.dump()).toBe('t1 ERROR adoption.file_failed: the disk is full');
    expect(world.launched).toEqual([]);
  });

  test('A8: a repeat of the tag is answered, and starts nothing', async () => {
    const world = new InstructionWorld();
    const process = await world.start();
    const session = process.connect(acknowledging(process));
    process.deliver('UNINSTALL_NODE', 't1');
    await process.settle(6_000);
    process.deliver('UNINSTALL_NODE', 't1');
    await process.settle(6_000);
    expect(session.dump()).toBe('t1 NO_CONTENT {}\nt1 NO_CONTENT {}');
    expect(world.launched).toHaveLength(1);
  });

  test.each([
    ['before its order is there: it may have begun, and is not run again', false],
    ['with its order there: it was accepted', true],
  ])('A8: the agent dies %s', async (_, isOrdered) => {
    const world = new InstructionWorld();
    const first = await world.start();
    first.connect(new FakeSession());
    // The third commit, that of the reply, is never made.
    first.journal.cut((changes) => (changes.some(({ change }) => change === 'reply') ? 'before' : undefined));
    first.deliver('UNINSTALL_NODE', 't1');
    await first.settle();
    if (!isOrdered) await world.orders.done(options);
    const second = await world.start();
    const session = second.connect(acknowledging(second));
    await second.settle(6_000);
    expect(session.dump()).toMatch(isOrdered ? /^t1 NO_CONTENT \{\}$/ : /^t1 ERROR INTERRUPTED: /);
    second.deliver('UNINSTALL_NODE', 't1');
    await second.settle(6_000);
    // Whoever starts the agent starts the removal, and no repeat does.
    expect(world.launched).toEqual([]);
  });

  test('REINSTALL_NODE is off unless the policy allows it', async () => {
    const world = new InstructionWorld();
    const process = await world.start();
    const session = process.connect(acknowledging(process));
    process.deliver('REINSTALL_NODE', 't1', { reinstallCommand: 'echo' });
    await process.settle();
    expect(session.dump()).toMatch(/^t1 ERROR DENIED/);
    expect(world.files.dump()).toEqual([]);
  });

  test('A8: the command of REINSTALL_NODE is on disk before the answer, as it was sent', async () => {
    const world = new InstructionWorld();
    const process = await world.start({ policy: () => open });
    const session = process.connect(new FakeSession());
    const command = 'curl "$URL" | sh; echo \'$(reboot)\'\n';
    process.deliver('REINSTALL_NODE', 't1', { reinstallCommand: command });
    await process.settle();
    expect(session.dump()).toBe('t1 NO_CONTENT {}');
    expect(world.files.text(`${folder}/command`)).toBe(command);
  });

  test.each([
    {},
    { reinstallCommand: '' },
    { reinstallCommand: ' \n' },
    { reinstallCommand: 'a\0b' },
    { reinstallCommand: 7 },
    '',
  ])('REINSTALL_NODE with %j is refused', async (payload) => {
    const world = new InstructionWorld();
    const process = await world.start({ policy: () => open });
    const session = process.connect(acknowledging(process));
    process.deliver('REINSTALL_NODE', 't1', payload);
    await process.settle();
    expect(session.dump()).toMatch(/^t1 ERROR /);
    expect(world.files.dump()).toEqual([]);
  });
});

describe('orders', () => {
  test('the first stands, and is there with its command or not at all', async () => {
    for (let change = 1; change <= 2; change++) {
      const files = new FakeMachineFiles();
      const orders = new RemovalOrders(files, folder);
      files.dieBefore(change);
      await expect(orders.give({ task: 'a', command: 'x', at: 1 }, options)).rejects.toThrow();
      files.revive();
      expect(await orders.read(options)).toBeUndefined();
      await orders.give({ task: 'b', command: 'y', at: 2 }, options);
      await orders.give({ task: 'c', command: undefined, at: 3 }, options);
      expect(await orders.read(options)).toEqual({ kind: 'reinstall', task: 'b', stage: 'removing', at: 2 });
      expect(files.text(orders.commandFile)).toBe('y');
    }
  });
});

describe('the end of it', () => {
  function rig() {
    const files = new FakeMachineFiles();
    const commands = new FakeCommandRunner();
    const orders = new RemovalOrders(files, folder);
    return { files, commands, orders, end: new MachineEnd({ commands, orders, traces: new FakeTraces(), folder, env: {} }) };
  }
  const order = { kind: 'reinstall', task: 'a', stage: 'removing', at: 1 } as const;

  test('the command is run from its file, and marked as begun before', async () => {
    const { files, commands, orders, end } = rig();
    await orders.give({ task: 'a', command: 'x', at: 1 }, options);
    let stage: string | undefined;
    commands.program(['/bin/bash'], () => {
      stage = files.text(`${folder}/order.json`);
      return { exitCode: 3, stderr: 'no network' };
    });
    expect(await end.install(order, options)).toBe('the command failed, exit code 3: no network');
    expect(stage).toContain('"stage":"installing"');
    expect(commands.dump()).toBe(`/bin/bash ${folder}/command\n`);
  });

  test('the machine starts anew by systemd, else by itself; the order is gone before', async () => {
    const { files, commands, orders, end } = rig();
    await orders.give({ task: 'a', command: 'x', at: 1 }, options);
    commands.program(['systemctl', 'reboot'], { exitCode: 1 });
    commands.program(['reboot'], {});
    await end.finish({ reboot: true }, options);
    expect(commands.dump()).toBe('systemctl reboot\nreboot\n');
    expect(await orders.read(options)).toBeUndefined();
    expect(files.text(orders.commandFile)).toBeUndefined();
  });

  test('without being asked it does not; one that cannot is an error', async () => {
    const { commands, end } = rig();
    await end.finish({ reboot: false }, options);
    expect(commands.dump()).toBe('');
    await expect(end.finish({ reboot: true }, options)).rejects.toThrow('reboot it by hand');
  });
});

describe('the program that removes the node', () => {
  const task: Task = {
    ...{ id: 'r' as TaskId, argv: ['/node', 'uninstall'], env: {}, cwd: '/', files: {} },
    ...{ timeoutMs: 60_000, maxOutputBytes: 100 },
  };

  test('runs once at a time, and anew when it was cut off', async () => {
    const clock = new FakeClock();
    const tasks = new FakeTaskRunner({ '/node': () => new Promise(() => {}) }, clock);
    const launcher = new RemovalLauncher(tasks, task, clock);
    await launcher.launch(options);
    await launcher.launch(options);
    expect(tasks.started).toHaveLength(1);
    tasks.interrupt(task.id);
    await launcher.launch(options);
    expect(tasks.started).toHaveLength(2);
  });

  test('one that cannot be started is an error', async () => {
    const clock = new FakeClock();
    const tasks = new FakeTaskRunner({}, clock);
    tasks.failNext();
    const launched = new RemovalLauncher(tasks, task, clock).launch(options);
    const failed = expect(launched).rejects.toThrow('told to fail');
    await clock.advance(50);
    await failed;
  });
});
