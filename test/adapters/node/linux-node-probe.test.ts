import { expect, test } from 'vitest';
import { LinuxHostFacts } from '../../../src/adapters/certificate/linux-host-facts.js';
import { ExecaCommandRunner } from '../../../src/adapters/command/execa-command-runner.js';
import { LinuxNodeProbe } from '../../../src/adapters/node/linux-node-probe.js';
import type { AbsolutePath } from '../../../src/domain/kernel/paths.js';
import { nodeProbeContract } from '../../contract/node-probe.contract.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeCommandRunner } from '../../fakes/fake-command-runner.js';
import { FakeNodeProbe } from '../../fakes/fake-node-probe.js';

const options = { signal: new AbortController().signal };
const host = new LinuxHostFacts('/' as AbsolutePath);

nodeProbeContract('fake', () => new FakeNodeProbe());
nodeProbeContract(
  'Linux',
  () => new LinuxNodeProbe({ commands: new ExecaCommandRunner(), host, hostname: 'web', clock: new FakeClock() }),
);

test('of this machine', async () => {
  const machine = await new LinuxNodeProbe({
    commands: new ExecaCommandRunner(),
    host,
    hostname: 'web',
    clock: new FakeClock(),
  }).look(options);
  expect(machine).toMatchObject({ hostname: 'web', os: expect.any(String), kernel: expect.stringMatching(/^\d/) });
  expect(machine.cpu.count).toBeGreaterThan(0);
  expect(machine.memoryBytes).toBeGreaterThan(1_000_000);
});

test('what is not there, hangs, fails or says too much is not probed, which is not the same as none', async () => {
  const look = (commands: FakeCommandRunner) =>
    new LinuxNodeProbe({ commands, host, hostname: 'web', clock: new FakeClock() }).look(options);
  const commands = new FakeCommandRunner();
  expect(await look(commands)).toMatchObject({ disks: undefined, gpus: undefined, versions: {} });
  commands.program(['df'], { exitCode: -1, timedOut: true });
  commands.program(['nvidia-smi'], { stdout: 'GPU-a, X, 1\n', dropped: 1 });
  commands.program(['kubelet'], { exitCode: 1, stdout: 'v1.2.3' });
  expect(await look(commands)).toMatchObject({ disks: undefined, gpus: undefined, versions: {} });
  commands.program(['df'], { stdout: 'Filesystem\n' });
  commands.program(['nvidia-smi'], { stdout: '' });
  commands.program(['kubelet'], { stdout: 'Kubernetes v1.2.3\n' });
  expect(await look(commands)).toMatchObject({ disks: [], gpus: [], versions: { kubelet: '1.2.3' } });
});

test('programs are asked every ten minutes, whatever is looked at meanwhile', async () => {
  const [commands, clock] = [new FakeCommandRunner(), new FakeClock()];
  commands.program(['kubelet'], { stdout: 'Kubernetes v1.2.3\n' });
  const probe = new LinuxNodeProbe({ commands, host, hostname: 'web', clock });
  for (let minute = 0; minute < 11; minute++) {
    await probe.look(options);
    await clock.advance(60_000);
  }
  expect(commands.dump()).toBe('kubelet --version\n'.repeat(2));
});
