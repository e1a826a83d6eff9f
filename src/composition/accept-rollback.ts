import { randomUUID } from 'node:crypto';
import { FileAuditLog } from '../adapters/audit/file-audit-log.js';
import { isConfirmed } from '../adapters/cli/confirm.js';
import { type CliContext, type ExitCode, exitCodes } from '../adapters/cli/context.js';
import type { AcceptRollbackOptions } from '../adapters/cli/local-verbs.js';
import { structured } from '../adapters/cli/output.js';
import { SystemClock } from '../adapters/clock/system-clock.js';
import { EtcdLogRollback, type Rollback } from '../adapters/log/etcd-log-rollback.js';
import { sha256 } from '../adapters/log/sha256.js';
import { EtcdControlStore } from '../adapters/store/etcd-control-store.js';
import { type Settled, settleRestored } from '../app/fleet/settle-restored.js';
import { AgentError } from '../domain/kernel/errors.js';
import { etcdOf } from './backend.js';
import { prepareDaemon } from './daemon.js';
import type { Facts } from './facts.js';

const NOTHING_TO_ACCEPT = 'the log in etcd goes on from what this server has seen: there is nothing to accept';

interface Accepted {
  readonly rollback: Rollback;
  readonly logId: string;
  readonly settled: Settled;
}

/** Takes an etcd that was put back to an older state, after which its servers start again. The server of this machine is stopped. */
export async function acceptRollback(context: CliContext, options: AcceptRollbackOptions): Promise<ExitCode> {
  const { console } = context;
  const prepared = await prepareDaemon(context, options, { mode: 'production', dataDir: '/var/lib/holdfast' });
  const { facts, logger } = prepared;
  if (facts.config.serverEtcd.length === 0)
    throw new AgentError('config.invalid', {
      problem: 'server.etcd is not set, so that there is no etcd that could have gone back',
      remedy: 'a log of its own that is damaged is mended by `holdfast restore`',
    });
  const clock = new SystemClock({ unref: true });
  const audit = new FileAuditLog({ file: facts.paths.auditLog, clock, logger });
  const { client, prefix } = await etcdOf(facts.config, context);
  const store = new EtcdControlStore({ client, prefix: `${prefix}store/`, clock });
  const log = new EtcdLogRollback({ client, prefix: `${prefix}log/`, witness: facts.paths.etcdWitness });
  try {
    const rollback = await log.find(context);
    if (rollback === undefined) {
      console.err(`${NOTHING_TO_ACCEPT}\n`);
      return exitCodes.done;
    }
    const { seen, held } = rollback;
    const lost = `this server has seen revision ${seen.revision}, etcd holds ${held.revision}: what came after it is lost for good.`;
    if (!options.yes && !(await isConfirmed(context, 'accept the rollback', lost))) return exitCodes.failed;
    await audit.open(context);
    await store.open(context);
    const record = auditRecord(rollback, facts);
    await audit.append({ ...record, line: 'decision', result: 'allowed' }, context);
    // First: an end in the middle leaves a log that is still refused.
    const settled = await settleRestored(store, clock.now(), context);
    const logId = await log.accept(rollback, context);
    await audit.append({ ...record, line: 'outcome', result: `log ${logId} from revision ${held.revision}` }, context);
    tell({ rollback, logId, settled }, options, context);
    return exitCodes.done;
  } finally {
    await store.close();
    await audit.close();
    client.close();
  }
}

function auditRecord(rollback: Rollback, { identity }: Facts) {
  const { seen, held } = rollback;
  const payload = `${identity.nodeId} ${seen.logId} ${seen.revision} ${held.logId} ${held.revision}`;
  const who = `local:${process.getuid?.() ?? 'unknown'}`;
  return { who, tag: randomUUID(), type: 'AcceptRollback', payloadDigest: sha256(payload), rule: 'own files' };
}

function tell(
  { rollback: { seen, held }, logId, settled }: Accepted,
  options: AcceptRollbackOptions,
  { console }: CliContext,
): void {
  const { streams, instructions, tokens } = settled;
  if (options.output !== 'table') {
    console.out(structured(options.output, { logId, revision: Number(held.revision), seen: Number(seen.revision), settled }));
    return;
  }
  console.out(`the log goes on from revision ${held.revision} with the id ${logId}; it had been seen up to ${seen.revision}\n`);
  console.out(
    `${streams} nodes with streams, ${instructions} unfinished instructions ended as unknown, ${tokens} unused tokens removed\n`,
  );
  console.err(
    [
      'Start the servers again; only this one needed to be told.',
      '  what was revoked after it is not any more: run `holdfast revoke`, `holdfast delete node` again',
      '  agents hold back what the older state would remove: apply what should be, or run `holdfast resync --accept` on them',
      '',
    ].join('\n'),
  );
}
