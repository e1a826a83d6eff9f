import { open, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { BackupManifest } from '../../domain/backup/model.js';
import { openArchive } from '../backup/backup-archive.js';
import { exists, syncFolder } from '../files/durable-file.js';
import { type CliContext, type ExitCode, exitCodes, type GlobalOptions, UsageError, withClient } from './context.js';
import { bytes, structured } from './output.js';

export interface BackupOptions extends GlobalOptions {
  readonly withKey: boolean;
}

/** Under its name is only what has been checked whole. */
export async function backup(context: CliContext, file: string, options: BackupOptions): Promise<ExitCode> {
  const { console, signal } = context;
  const path = resolve(file);
  if (await exists(path)) throw new UsageError(`${path} is there already`);
  const partial = `${path}.part`;
  try {
    await receive(context, partial, options);
    signal.throwIfAborted();
    const archive = await openArchive(partial, context);
    await archive.close();
    await rename(partial, path);
    await syncFolder(dirname(path));
    if (options.output === 'table') console.out(`${summary(path, archive.manifest)}\n`);
    else console.out(structured(options.output, { file: path, ...shownOf(archive.manifest) }));
    return exitCodes.done;
  } finally {
    await rm(partial, { force: true });
  }
}

async function receive(context: CliContext, partial: string, options: BackupOptions): Promise<void> {
  // Of an earlier one that was killed.
  await rm(partial, { force: true });
  await withClient(context, options, async (client) => {
    const target = await open(partial, 'wx', 0o600);
    try {
      for await (const { piece } of client.backup({ withKey: options.withKey }, context)) await target.writeFile(piece);
      await target.sync();
    } finally {
      await target.close();
    }
  });
}

function summary(path: string, { files, revision }: BackupManifest): string {
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  const key = files.some(({ name }) => name === 'sealing.key')
    ? 'with the sealing key'
    : 'without the sealing key: keep it apart';
  return `${path}: log up to revision ${revision}, ${bytes(total)}, ${key}`;
}

export function shownOf({ madeAt, ...manifest }: BackupManifest) {
  return { ...manifest, madeAt: new Date(madeAt).toISOString() };
}
