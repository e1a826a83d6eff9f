import { hash, randomUUID } from 'node:crypto';
import { ContainerModule } from 'inversify';
import { DurableMachineFiles } from '../../adapters/files/durable-machine-files.js';
import { SystemdUnits } from '../../adapters/service/systemd-units.js';
import { AptPackages } from '../../app/kubernetes/apt-packages.js';
import { HelmProgram } from '../../app/kubernetes/helm-program.js';
import { StepTasks } from '../../app/kubernetes/step-tasks.js';
import { UpgradeEffect } from '../../app/kubernetes/upgrade-effect.js';
import { UpgradeLog } from '../../app/kubernetes/upgrade-log.js';
import { UpgradeSteps } from '../../app/kubernetes/upgrade-steps.js';
import { type AbsolutePath, under } from '../../domain/kernel/paths.js';
import { NodePorts, Ports, Root } from '../tokens.js';
import { ADMIN_CONFIG, TASK_ENV } from './kubernetes.js';

const LOCAL_API = 'https://127.0.0.1:6443';

/** Another version of Kubernetes on this node. */
export const upgradeModule = new ContainerModule(({ bind }) => {
  bind(NodePorts.upgradeLog)
    .toResolvedValue(() => new UpgradeLog(randomUUID), [])
    .inSingletonScope();
  bind(NodePorts.upgrade)
    .toResolvedValue(
      ({ identity }, { root }, commands, runner, web, clock, settings, log, logger) => {
        const inRoot = (path: string) => under(root, path as AbsolutePath);
        const sha256 = (data: string | Uint8Array) => hash('sha256', data, 'hex');
        const tasks = new StepTasks({ tasks: runner, clock, sha256, env: TASK_ENV });
        const steps = new UpgradeSteps({
          commands,
          tasks,
          packages: new AptPackages({ commands, tasks }),
          helm: new HelmProgram({ commands, tasks, web, clock, sha256, folder: inRoot('/usr/local/bin'), architecture }),
          files: new DurableMachineFiles(),
          units: new SystemdUnits({ commands }),
          web,
          clock,
          paths: {
            signingKey: inRoot('/etc/apt/keyrings/kubernetes-apt-keyring.asc'),
            aptList: inRoot('/etc/apt/sources.list.d/kubernetes.list'),
            adminConfig: inRoot(ADMIN_CONFIG),
            kubeletConfig: inRoot('/etc/kubernetes/kubelet.conf'),
          },
          server: () => settings.current.packages,
          localApi: LOCAL_API,
          nodeName: identity.hostname,
        });
        return new UpgradeEffect({ steps, log, logger: logger.child({ subsystem: 'upgrade' }) });
      },
      [
        ...([Root.facts, Root.node, Ports.commands, NodePorts.tasks, NodePorts.web, Ports.clock] as const),
        ...([NodePorts.settings, NodePorts.upgradeLog, Ports.logger] as const),
      ],
    )
    .inSingletonScope();
});

const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
