import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { openArchive } from '../adapters/backup/backup-archive.js';
import { type RestoredBackup, restoreBackup } from '../adapters/backup/restore-backup.js';
import { type RestoreToEtcdOptions, restoreToEtcd } from '../adapters/backup/restore-to-etcd.js';
import { SealerKeyFile } from '../adapters/certificate/sealer-key-file.js';
import { type CliContext, type ExitCode, exitCodes, UsageError } from '../adapters/cli/context.js';
import type { RestoreOptions } from '../adapters/cli/local-verbs.js';
import { structured, table } from '../adapters/cli/output.js';
import { SystemClock } from '../adapters/clock/system-clock.js';
import { loadAddon } from '../adapters/dataplane/addon.js';
import { listCopies } from '../adapters/log/sqlite-log-copies.js';
import { restoreLog } from '../adapters/log/sqlite-log-restore.js';
import { type CarriedRevocations, carryRevocations } from '../app/certificate/carry-revocations.js';
import { openSealer } from '../app/certificate/open-sealer.js';
import { type Settled, settleRestored } from '../app/fleet/settle-restored.js';
import { resolveConfig } from '../domain/config/plan.js';
import { configError } from '../domain/config/problem.js';
import { AgentError } from '../domain/kernel/errors.js';
import type { Paths } from '../domain/kernel/paths.js';
import type { ControlStore, FormerStore } from '../ports/store/control-store.js';
import { etcdOf } from './backend.js';
import { checkDataDir, holdDataDir, makeDataDir } from './data-dir.js';
import { pathsOf, usualDataDir } from './paths.js';
import { version } from './version.js';

const ETCD_HINTS = [
  'Each server on this etcd needs the sealing.key of this data directory.',
  'One that has served from this etcd before refuses to start until its etcd-log.witness is moved away.',
];

/** Puts a copy in the place of a damaged log while no daemon runs, or lists the copies. */
export async function restore(context: CliContext, options: RestoreOptions): Promise<ExitCode> {
  const { console, env } = context;
  const paths = pathsOf(options, env, usualDataDir());
  if (options.backup !== undefined) return restoreFrom(options.backup, paths, options, context);
  if (isOfEtcd(options)) throw new UsageError('--etcd and --force go with --backup');
  if (!existsSync(paths.dataDir))
    throw new AgentError('config.invalid', {
      problem: `there is no data directory ${paths.dataDir}`,
      remedy: 'name the data directory of the stopped daemon with --data-dir or HOLDFAST_DATA_DIR',
    });
  if (options.list) {
    const copies = listCopies(paths.logDb).map(({ file, time, head, problem }) => ({
      file,
      time: new Date(time).toISOString(),
      revision: head?.revision,
      problem,
    }));
    const rows = copies.map(({ file, time, revision, problem }) => [file, time, String(revision ?? '-'), problem ?? 'intact']);
    console.out(
      options.output === 'table' ? table(['COPY', 'MADE', 'REVISION', 'STATE'], rows) : structured(options.output, { copies }),
    );
    return exitCodes.done;
  }
  await checkDataDir(paths);
  holdDataDir(loadAddon(), paths);
  const copy = options.copy === undefined ? {} : { copy: options.copy };
  const restored = restoreLog({ file: paths.logDb, now: Date.now(), ...copy });
  if (options.output !== 'table') console.out(structured(options.output, restored));
  else {
    const { revision, time, aside, acknowledged } = restored;
    const lost = acknowledged === undefined || acknowledged <= revision ? '' : `; revisions up to ${acknowledged} are lost`;
    console.out(`restored ${restored.copy}: revision ${revision} of ${new Date(time).toISOString()}${lost}\n`);
    for (const file of aside) console.out(`set aside ${file}\n`);
  }
  return exitCodes.done;
}

/** A whole control plane, also into a data directory that has nothing yet. */
async function restoreFrom(file: string, paths: Paths, options: RestoreOptions, context: CliContext): Promise<ExitCode> {
  const { console } = context;
  if (options.copy !== undefined || options.list) throw new UsageError('--backup takes neither a copy nor --list');
  if (options.etcd === undefined && isOfEtcd(options)) throw new UsageError('--force and what is said of etcd go with --etcd');
  await checkDataDir(paths);
  const archive = await openArchive(resolve(file), context);
  try {
    await makeDataDir(paths);
    holdDataDir(loadAddon(), paths);
    const clock = new SystemClock({ unref: true });
    const settle = async (store: ControlStore, keyFile: string, former: FormerStore | undefined) => {
      await openSealer(store, new SealerKeyFile(keyFile), context);
      return {
        ...(await settleRestored(store, clock.now(), context)),
        revocations: await carryRevocations(former, store, context),
      };
    };
    const parts = { archive, paths, clock, settle };
    const restored =
      options.etcd === undefined ? await restoreBackup(parts, context) : await restoreInto(options.etcd, parts, options, context);
    const madeAt = new Date(archive.manifest.madeAt).toISOString();
    if (options.output !== 'table') console.out(structured(options.output, { madeAt, ...restored }));
    else tell(restored, madeAt, options, context);
    return exitCodes.done;
  } finally {
    await archive.close();
  }
}

function isOfEtcd({ etcd, etcdCluster, etcdCa, etcdCert, etcdKey, force }: RestoreOptions): boolean {
  return force || [etcd, etcdCluster, etcdCa, etcdCert, etcdKey].some((given) => given !== undefined);
}

/** What `--etcd` needs beside it, as the settings of a server: they are checked as those are. */
async function restoreInto<T>(
  etcd: string,
  parts: Omit<RestoreToEtcdOptions<T>, 'place' | 'force' | 'version'>,
  options: RestoreOptions,
  context: CliContext,
): Promise<RestoredBackup<T>> {
  const flags = {
    serverEtcd: etcd,
    serverEtcdCluster: options.etcdCluster,
    serverEtcdCa: options.etcdCa,
    serverEtcdCert: options.etcdCert,
    serverEtcdKey: options.etcdKey,
  };
  const resolved = resolveConfig({ mode: 'production', environment: {}, flags });
  if (!resolved.valid) throw configError(resolved.problems);
  const place = await etcdOf(resolved.config, context);
  try {
    return await restoreToEtcd({ ...parts, place, force: options.force, version }, context);
  } finally {
    place.client.close();
  }
}

interface SettledStore extends Settled {
  readonly revocations: CarriedRevocations;
}

function tell(
  { revision, settled, aside }: RestoredBackup<SettledStore>,
  madeAt: string,
  { etcd }: RestoreOptions,
  { console }: CliContext,
): void {
  const { streams, instructions, tokens, revocations } = settled;
  console.out(`restored the control plane of ${madeAt}: log at revision ${revision}, ${streams} nodes with streams\n`);
  console.out(`${instructions} unfinished instructions ended as unknown, ${tokens} unused tokens removed\n`);
  for (const { of, id, reason } of revocations.revoked) console.out(`still revoked: ${of} ${id} (${reason})\n`);
  for (const name of aside) console.out(`set aside ${name}\n`);
  console.err(
    [
      `What happened after ${madeAt} is not in it:`,
      '  agents hold back what it would remove: apply what should be, or run `holdfast resync --accept` on them',
      '  nodes that registered later have to register again; nodes that were removed later are listed again: see `holdfast nodes`',
      ...revocationHint(revocations),
      ...(etcd === undefined ? [] : ETCD_HINTS),
      '',
    ].join('\n'),
  );
}

/** A store that was there has been asked; elsewhere it may have gone on. */
function revocationHint({ problem }: CarriedRevocations): readonly string[] {
  const again = '  what was revoked later is not: run `holdfast revoke`, `holdfast delete node` again';
  return problem === undefined ? [] : [`${again}; the former store was not asked: ${problem}`];
}
