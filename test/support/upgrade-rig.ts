import { createHash } from 'node:crypto';
import { AptPackages } from '../../src/app/kubernetes/apt-packages.js';
import { HelmProgram } from '../../src/app/kubernetes/helm-program.js';
import { StepTasks } from '../../src/app/kubernetes/step-tasks.js';
import { UpgradeEffect } from '../../src/app/kubernetes/upgrade-effect.js';
import type { UpgradeLog } from '../../src/app/kubernetes/upgrade-log.js';
import { UpgradeSteps } from '../../src/app/kubernetes/upgrade-steps.js';
import type { AbsolutePath } from '../../src/domain/kernel/paths.js';
import type { Clock } from '../../src/ports/clock.js';
import type { CommandRunner } from '../../src/ports/command/command-runner.js';
import type { MachineFiles } from '../../src/ports/files/machine-files.js';
import type { TaskRunner } from '../../src/ports/instruction/task-runner.js';
import type { Logger } from '../../src/ports/logger.js';
import type { WebClient } from '../../src/ports/outbound/web-client.js';
import type { Units } from '../../src/ports/service/units.js';

export const PACKAGES = 'https://packages.test';

export interface UpgradeMachine {
  readonly commands: CommandRunner;
  readonly tasks: TaskRunner;
  readonly files: MachineFiles;
  readonly units: Units;
  readonly web: WebClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly upgradeLog: Pick<UpgradeLog, 'say'>;
}

/** As it is wired on a node, over fakes. */
export function upgradeEffect({ upgradeLog: log, logger, ...machine }: UpgradeMachine): UpgradeEffect {
  const sha256 = (data: string | Uint8Array) => createHash('sha256').update(data).digest('hex');
  const tasks = new StepTasks({ tasks: machine.tasks, clock: machine.clock, sha256, env: { PATH: '/bin' } });
  const path = (text: string) => text as AbsolutePath;
  const folder = path('/usr/local/bin');
  const steps = new UpgradeSteps({
    ...machine,
    tasks,
    packages: new AptPackages({ ...machine, tasks }),
    helm: new HelmProgram({ ...machine, tasks, sha256, folder, architecture: 'amd64' }),
    paths: {
      signingKey: path('/etc/apt/keyrings/kubernetes-apt-keyring.asc'),
      aptList: path('/etc/apt/sources.list.d/kubernetes.list'),
      adminConfig: path('/etc/kubernetes/admin.conf'),
      kubeletConfig: path('/etc/kubernetes/kubelet.conf'),
    },
    server: () => PACKAGES,
    localApi: 'https://127.0.0.1:6443',
    nodeName: 'node-1',
  });
  return new UpgradeEffect({ steps, log, logger });
}
