import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { taskRunnerContract } from '../../contract/task-runner.contract.js';
import { FakeTaskRunner } from '../../fakes/fake-task-runner.js';
import { taskRig } from '../../support/task-rig.js';

taskRunnerContract('fake', async () => {
  let times = 0;
  const runner = new FakeTaskRunner(
    {
      '/says': () => ({ exitCode: 3, stdout: 'out', stderr: 'err' }),
      '/fills': () => ({ stdout: 'x'.repeat(1_000) }),
      '/differs': () => {
        times += 1;
        return { stdout: `time ${times}` };
      },
      '/falls': () => ({ signal: 15 }),
      '/waits': () => new Promise(() => {}),
    },
    new SystemClock(),
  );
  return {
    open: () => runner,
    programs: { says: ['/says'], fills: ['/fills'], differs: ['/differs'], falls: ['/falls'], waits: ['/waits'] },
    interrupt: async (id) => runner.interrupt(id),
  };
});

taskRunnerContract('native', async () => {
  const { open, kill } = await taskRig();
  return {
    open,
    programs: {
      says: ['/bin/sh', '-c', 'printf out; printf err >&2; exit 3'],
      fills: ['/bin/sh', '-c', 'PATH=/usr/bin:/bin; printf %1000s | tr " " x'],
      differs: ['/bin/cat', '/proc/sys/kernel/random/uuid'],
      falls: ['/bin/sh', '-c', 'kill -TERM $$'],
      waits: ['/bin/sleep', '1000'],
    },
    interrupt: async (id) => kill(id, ['keeper', 'supervisor']),
  };
});
