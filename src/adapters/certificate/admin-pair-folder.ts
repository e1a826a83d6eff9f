import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Pair, StoredPair } from '../../ports/certificate/pair-store.js';
import { ensureFolder, replaceFile, syncFolder } from '../files/durable-file.js';
import { errnoOf } from '../files/errno.js';
import { type PairFiles, readPair } from './pair-folder.js';

/** Where somebody who operates a control plane keeps a certificate: `admin.crt`, `admin.key` with mode 0600, and `admin-ca.crt`. */
export function adminPairFiles(folder: string): PairFiles {
  return {
    certificate: join(folder, 'admin.crt'),
    privateKey: join(folder, 'admin.key'),
    ca: join(folder, 'admin-ca.crt'),
  };
}

/** @throws AgentError `certificate.unusable`; on abort with the signal's reason */
export async function readAdminPair(folder: string, options: CallOptions): Promise<StoredPair> {
  const files = adminPairFiles(folder);
  const found = await readPair(files, options);
  if (found.found === 'pair') return found.pair;
  const problem =
    found.found === 'nothing' ? `${folder} has no admin.crt, admin.key and admin-ca.crt` : `${folder}: ${found.problem}`;
  const remedy = 'name the folder that `holdfast cert create` or the server made with --admin-cert or HOLDFAST_ADMIN_CERT';
  throw new AgentError('certificate.unusable', { problem, remedy });
}

/** Makes the folder, which must not be there. @throws AgentError `certificate.not_written` */
export async function makeAdminFolder(folder: string): Promise<void> {
  await written(folder, async () => {
    await ensureFolder(dirname(folder));
    await mkdir(folder, { mode: 0o700 });
  });
}

/** On the disk when it resolves, in place of what was there. @throws AgentError `certificate.not_written` */
export async function writeAdminPair(folder: string, pair: Pair, options: CallOptions): Promise<void> {
  const files = adminPairFiles(folder);
  await written(folder, async () => {
    await ensureFolder(folder);
    await replaceFile(files.privateKey, pair.privateKey, { mode: 0o600, ...options });
    await replaceFile(files.certificate, pair.certificate, { mode: 0o644, ...options });
    await replaceFile(files.ca, pair.ca, { mode: 0o644, ...options });
    await syncFolder(dirname(folder));
  });
}

/** Absent is success. */
export async function removeAdminPair(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}

async function written(folder: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (cause) {
    const code = errnoOf(cause);
    if (code === undefined) throw cause;
    throw new AgentError('certificate.not_written', { problem: `${folder} cannot be written: ${code}` }, { cause });
  }
}
