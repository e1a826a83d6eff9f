import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { ExecaCommandRunner } from '../../../src/adapters/command/execa-command-runner.js';
import { FileDnsmasqConfig } from '../../../src/adapters/dnsmasq/file-dnsmasq-config.js';
import { DnsmasqEffect } from '../../../src/app/dnsmasq/dnsmasq-effect.js';
import type { TaskId } from '../../../src/ports/instruction/task-runner.js';
import { sha256 } from '../../support/instruction-rig.js';

/** An agent that is killed between the rename of the file and the restart of the service. */
const [file = '', memoryFile = '', contents = ''] = process.argv.slice(2);
const effect = new DnsmasqEffect({
  config: new FileDnsmasqConfig({ file, memoryFile, commands: new ExecaCommandRunner() }),
  units: {
    state: async () => ({ isKnown: true, isActive: true, startedAt: 1n, text: 'active (running)' }),
    restart: async () => {
      process.kill(process.pid, 'SIGKILL');
    },
  },
  clock: new SystemClock(),
  sha256,
  boot: 'boot-1',
});
const context = {
  signal: new AbortController().signal,
  task: 'none' as TaskId,
  receivedAt: 0,
  step: undefined,
  reached: async () => {},
};
await effect.run({ do: 'update_dnsmasq', contents }, context);
