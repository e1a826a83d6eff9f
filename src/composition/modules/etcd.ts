import { ContainerModule } from 'inversify';
import { GrpcEtcdMembers } from '../../adapters/etcd/grpc-etcd-members.js';
import { EtcdMembershipService } from '../../app/etcd/etcd-membership-service.js';
import { type AbsolutePath, under } from '../../domain/kernel/paths.js';
import { NodePorts, Ports, Root } from '../tokens.js';

/** Where kubeadm puts the pair of a control plane's etcd. */
const PKI = '/etc/kubernetes/pki/etcd' as AbsolutePath;
const LOCAL = 'https://127.0.0.1:2379';

/** The etcd of this machine's Kubernetes, which is never the one of the log. */
export const etcdModule = new ContainerModule(({ bind }) => {
  bind(NodePorts.etcd)
    .toResolvedValue(
      ({ root }, clock) => {
        const pki = under(root, PKI);
        const files = { ca: `${pki}/ca.crt`, certificate: `${pki}/peer.crt`, key: `${pki}/peer.key` };
        return new EtcdMembershipService({ members: new GrpcEtcdMembers({ url: LOCAL, files }), clock });
      },
      [Root.node, Ports.clock],
    )
    .inSingletonScope();
});
