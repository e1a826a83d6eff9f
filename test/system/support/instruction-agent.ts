import { writeSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { NativeTaskRunner } from '../../../src/adapters/instruction/native-task-runner.js';
import { SqliteJournal } from '../../../src/adapters/instruction/sqlite-journal.js';
import { InstructionEngine } from '../../../src/app/instruction/instruction-engine.js';
import type { LinkSession } from '../../../src/app/link/link-session.js';
import { USUAL_POLICY } from '../../../src/domain/instruction/policy.js';
import type { LinkMessage, ServerMessage } from '../../../src/domain/link/model.js';
import { FakeAuditLog } from '../../fakes/fake-audit-log.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeServiceManager } from '../../fakes/fake-service-manager.js';
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
const engine = new InstructionEngine({
  journal: new SqliteJournal({ file: join(folder, 'journal.db'), clock, reserveBytes: 4_096 }),
  tasks: new NativeTaskRunner({ folder: join(folder, 'run'), runnerPath: runner }),
  ...{ audit, web, clock, sha256, services: new FakeServiceManager(), logger: new FakeLogger() },
  policy: () => USUAL_POLICY,
  onAuditFailure: 'refuse',
  nodeIsReady: () => true,
  boot: 'boot-1',
  rootFingerprint: () => 'root-1',
  sources: () => ({ installer: INSTALLER, conductor: undefined }),
  scriptEnv: { PATH: '/usr/bin:/bin' },
});
await engine.start();

const session: LinkSession = {
  server: serverFacts(),
  signal: new AbortController().signal,
  async send(message: LinkMessage): Promise<boolean> {
    writeSync(1, `${JSON.stringify(message)}\n`);
    return true;
  },
};
engine.opened(session);
writeSync(1, 'ready\n');
for await (const line of createInterface(process.stdin)) engine.received(session, JSON.parse(line) as ServerMessage);
