import { ContainerModule } from 'inversify';
import { NativeTaskRunner } from '../../adapters/instruction/native-task-runner.js';
import { runnerPath, systemdRunPath } from '../../adapters/instruction/runner-process.js';
import { FileJoinSecrets } from '../../adapters/kubernetes/file-join-secrets.js';
import { UndiciWebClient } from '../../adapters/outbound/undici-web-client.js';
import { ClusterPrograms } from '../../app/kubernetes/cluster-programs.js';
import { HelmEffect } from '../../app/kubernetes/helm-effect.js';
import { JoinEffect } from '../../app/kubernetes/join-effect.js';
import { KubernetesEffect } from '../../app/kubernetes/kubernetes-effect.js';
import { type AbsolutePath, under } from '../../domain/kernel/paths.js';
import { NodePorts, Ports, Root } from '../tokens.js';

export const ADMIN_CONFIG = '/etc/kubernetes/admin.conf' as AbsolutePath;
/** Programs of instructions get this and nothing of ours. */
export const TASK_ENV = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root', LANG: 'C.UTF-8' };

/** What a node does with the Kubernetes cluster that it is a part of. */
export const kubernetesModule = new ContainerModule(({ bind }) => {
  bind(NodePorts.tasks)
    .toResolvedValue(
      ({ paths }) =>
        new NativeTaskRunner({
          folder: paths.run,
          runnerPath: runnerPath(process.env.HOLDFAST_RUNNER),
          systemdRun: systemdRunPath(),
        }),
      [Root.facts],
    )
    .inSingletonScope();
  bind(NodePorts.clusterPrograms)
    .toResolvedValue(
      ({ root }, commands, tasks) =>
        new ClusterPrograms({ commands, tasks, kubeconfig: under(root, ADMIN_CONFIG), env: TASK_ENV }),
      [Root.node, Ports.commands, NodePorts.tasks],
    )
    .inSingletonScope();
  bind(NodePorts.kubernetes)
    .toResolvedValue((programs) => new KubernetesEffect(programs), [NodePorts.clusterPrograms])
    .inSingletonScope();
  bind(NodePorts.helm)
    .toResolvedValue(
      (programs, web, clock) => new HelmEffect({ programs, web, clock }),
      [NodePorts.clusterPrograms, NodePorts.web, Ports.clock],
    )
    .inSingletonScope();
  bind(NodePorts.web).toConstantValue(new UndiciWebClient());
  bind(NodePorts.join)
    .toResolvedValue(
      ({ root }, programs, clock) => {
        const inEtc = (name: string) => under(root, `/etc/kubernetes/${name}` as AbsolutePath);
        const secrets = new FileJoinSecrets({
          certificateKeyFile: inEtc('enc/cert-upload-key.txt'),
          encryptionKeyFile: inEtc('enc/key.txt'),
          kubeadmConfig: inEtc('kubeadm-config.yaml'),
          clock,
        });
        return new JoinEffect({ programs, secrets });
      },
      [Root.node, NodePorts.clusterPrograms, Ports.clock],
    )
    .inSingletonScope();
});
