import { randomUUID } from 'node:crypto';
import { writeSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { bootTime } from '../../../src/adapters/clock/boot-time.js';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { NativeTaskRunner } from '../../../src/adapters/instruction/native-task-runner.js';
import { SqliteJournal } from '../../../src/adapters/instruction/sqlite-journal.js';
import { DnsmasqEffect } from '../../../src/app/dnsmasq/dnsmasq-effect.js';
import { EtcdMembershipService } from '../../../src/app/etcd/etcd-membership-service.js';
import { EtcdRemovalEffect } from '../../../src/app/etcd/etcd-removal-effect.js';
import { InstructionEngine } from '../../../src/app/instruction/instruction-engine.js';
import { ClusterPrograms } from '../../../src/app/kubernetes/cluster-programs.js';
import { HelmEffect } from '../../../src/app/kubernetes/helm-effect.js';
import { JoinEffect } from '../../../src/app/kubernetes/join-effect.js';
import { KubernetesEffect } from '../../../src/app/kubernetes/kubernetes-effect.js';
import type { LinkSession } from '../../../src/app/link/link-session.js';
import { RemovalEffect } from '../../../src/app/uninstall/removal-effect.js';
import { RemovalOrders } from '../../../src/app/uninstall/removal-orders.js';
import { NO_CONTENT } from '../../../src/domain/instruction/model.js';
import { USUAL_POLICY } from '../../../src/domain/instruction/policy.js';
import type { AbsolutePath } from '../../../src/domain/kernel/paths.js';
import type { LinkMessage, ServerMessage } from '../../../src/domain/link/model.js';
import { FakeAuditLog } from '../../fakes/fake-audit-log.js';
import { FakeCommandRunner } from '../../fakes/fake-command-runner.js';
import { FakeDnsmasqConfig } from '../../fakes/fake-dnsmasq-config.js';
import { FakeEtcdMembers } from '../../fakes/fake-etcd-members.js';
import { FakeJoinSecrets } from '../../fakes/fake-join-secrets.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeMachineFiles } from '../../fakes/fake-machine-files.js';
import { FakeServiceManager } from '../../fakes/fake-service-manager.js';
import { FakeUnits } from '../../fakes/fake-units.js';
import { FakeWebClient } from '../../fakes/fake-web-client.js';
import { INSTALLER, serverFacts, sha256 } from '../../support/instruction-rig.js';

/**
 * An agent that is nothing but its instruction engine, on a real journal and real runners. Its control plane is on the standard streams:
 * a message a line, as JSON. Script `sN` appends N to the witness and takes a moment.
 */
const [folder = '', runner = '', scripts = ''] = process.argv.slice(2);
const web = new FakeWebClient();
for (let number = 0; number < Number(scripts); number++) {
  web.serve(
    `${INSTALLER}/scripts?t=s${number}&i=e30%3D`,
    `echo ${number} >> ${folder}/witness\nsleep 0.0${number % 10}\necho end ${number}\n`,
  );
}
const clock = new SystemClock();
const audit = new FakeAuditLog();
await audit.open({ signal: new AbortController().signal });
const tasks = new NativeTaskRunner({ folder: join(folder, 'run'), runnerPath: runner });
const env = { PATH: '/usr/bin:/bin' };
const programs = new ClusterPrograms({ commands: new FakeCommandRunner(), tasks, kubeconfig: '/nowhere', env });
const engine = new InstructionEngine({
  journal: new SqliteJournal({ file: join(folder, 'journal.db'), clock, reserveBytes: 4_096 }),
  tasks,
  ...{ audit, web, clock, sha256, services: new FakeServiceManager(), logger: new FakeLogger() },
  policy: () => USUAL_POLICY,
  onAuditFailure: 'refuse',
  newTag: randomUUID,
  upload: () => Promise.reject(new Error('no server takes uploads here')),
  nodeIsReady: () => true,
  boot: 'boot-1',
  bootTime,
  rootFingerprint: () => 'root-1',
  sources: () => ({ installer: INSTALLER, conductor: undefined }),
  scriptEnv: env,
  effects: {
    dnsmasq: new DnsmasqEffect({ config: new FakeDnsmasqConfig(), units: new FakeUnits(clock), clock, sha256, boot: 'boot-1' }),
    etcd: new EtcdRemovalEffect(new EtcdMembershipService({ members: new FakeEtcdMembers(), clock })),
    helm: new HelmEffect({ programs, web, clock }),
    join: new JoinEffect({ programs, secrets: new FakeJoinSecrets() }),
    kubernetes: new KubernetesEffect(programs),
    overlay: { run: async () => NO_CONTENT },
    removal: new RemovalEffect({
      orders: new RemovalOrders(new FakeMachineFiles(), '/none' as AbsolutePath),
      clock,
      launch: async () => {},
    }),
    upgrade: { run: async () => NO_CONTENT },
    vip: { run: async () => NO_CONTENT },
  },
  reading: { yaml: () => [] },
});
await engine.start();

const send = async (message: LinkMessage): Promise<boolean> => {
  writeSync(1, `${JSON.stringify(message)}\n`);
  return true;
};
const session: LinkSession = {
  server: serverFacts(),
  localAddress: '',
  signal: new AbortController().signal,
  send,
  sendBehind: send,
};
engine.opened(session);
writeSync(1, 'ready\n');
for await (const line of createInterface(process.stdin)) engine.received(session, JSON.parse(line) as ServerMessage);
