import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, readlink, rename, rm, rmdir, stat, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Pair, StoredPair } from '../../ports/certificate/pair-store.js';
import { ensureFolder, syncFolder, writeSynced } from '../files/durable-file.js';
import { errnoOf } from '../files/errno.js';
import { readTextFile } from '../files/text-file.js';
import { checkedPair } from './pair-reader.js';

/** A chain of RSA 4096 is 20 KB. */
const MAX_BYTES = 1024 * 1024;
const LINK = 'current';
/** Of what is not finished, or not wanted any more. */
const TEMPORARY = /^\.(new|gone|link)-[0-9a-f]{16}$/;

export type FoundPair =
  | { readonly found: 'pair'; readonly pair: StoredPair }
  | { readonly found: 'nothing' }
  | { readonly found: 'damaged'; readonly problem: string };

/** The places of the three parts of a pair. */
export type PairFiles = Readonly<Record<keyof Pair, string>>;

/**
 * `<folder>/<serial>/{crt,key,ca}`, each pair put in place by one rename when it is whole and synced, and the link `current`, which one
 * rename moves from pair to pair.
 */
export class PairFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  filesOf(serial: string): PairFiles {
    const folder = join(this.path, serial);
    return { certificate: join(folder, 'crt'), privateKey: join(folder, 'key'), ca: join(folder, 'ca') };
  }

  /** Serial of the current pair, whatever its state. */
  async current(): Promise<string | undefined> {
    return readlink(join(this.path, LINK)).catch((error: unknown) => {
      if (errnoOf(error) === 'ENOENT') return undefined;
      throw error;
    });
  }

  /** Serials of all pairs that are in place. */
  async serials(): Promise<readonly string[]> {
    const names = await readdir(this.path).catch((error: unknown) => {
      if (errnoOf(error) === 'ENOENT') return [];
      throw error;
    });
    return names.filter((name) => /^[0-9a-f]+$/.test(name));
  }

  async put({ serial, certificate, privateKey, ca }: StoredPair): Promise<void> {
    await ensureFolder(this.path);
    const temporary = this.#temporary('new');
    await mkdir(temporary, { mode: 0o700 });
    await writeSynced(join(temporary, 'key'), privateKey, 0o600);
    await writeSynced(join(temporary, 'crt'), certificate, 0o644);
    await writeSynced(join(temporary, 'ca'), ca, 0o644);
    await syncFolder(temporary);
    await this.remove(serial);
    await rename(temporary, join(this.path, serial));
    await syncFolder(this.path);
  }

  async pointTo(serial: string): Promise<void> {
    const temporary = this.#temporary('link');
    await symlink(serial, temporary);
    await rename(temporary, join(this.path, LINK));
    await syncFolder(this.path);
  }

  /** In one step, as seen by readers. Absent is success. */
  async remove(serial: string): Promise<void> {
    const temporary = this.#temporary('gone');
    try {
      await rename(join(this.path, serial), temporary);
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return;
      throw error;
    }
    await rm(temporary, { recursive: true });
  }

  /** What a writer that died left behind. */
  async tidy(): Promise<void> {
    const names = await readdir(this.path).catch(() => []);
    for (const name of names) {
      if (TEMPORARY.test(name)) await rm(join(this.path, name), { recursive: true, force: true });
    }
  }

  /** The link, what writers left behind, and the folder itself, unless somebody else has put something there. */
  async clear(): Promise<void> {
    await rm(join(this.path, LINK), { force: true });
    await this.tidy();
    try {
      await rmdir(this.path);
      await syncFolder(dirname(this.path));
    } catch (error) {
      if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(errnoOf(error) ?? '')) throw error;
    }
  }

  #temporary(kind: 'new' | 'gone' | 'link'): string {
    return join(this.path, `.${kind}-${randomBytes(8).toString('hex')}`);
  }
}

/** Reads a pair, wherever it is; a key that others may read is made private. Rejects on abort only. */
export async function readPair(files: PairFiles, options: CallOptions): Promise<FoundPair> {
  const [certificate, privateKey, ca] = await Promise.all([
    readTextFile(files.certificate, MAX_BYTES, options),
    readTextFile(files.privateKey, MAX_BYTES, options),
    readTextFile(files.ca, MAX_BYTES, options),
  ]);
  const parts = { certificate, privateKey, ca };
  if (Object.values(parts).every(({ found }) => found === 'nothing')) return { found: 'nothing' };
  if (certificate.found !== 'text' || privateKey.found !== 'text' || ca.found !== 'text') {
    return { found: 'damaged', problem: describeMissing(parts, files) };
  }
  await makePrivate(files.privateKey);
  try {
    return { found: 'pair', pair: checkedPair({ certificate: certificate.text, privateKey: privateKey.text, ca: ca.text }) };
  } catch (error) {
    return { found: 'damaged', problem: error instanceof AgentError ? (error.facts.problem ?? error.message) : String(error) };
  }
}

function describeMissing(
  parts: Readonly<Record<keyof Pair, Awaited<ReturnType<typeof readTextFile>>>>,
  files: PairFiles,
): string {
  const problems = (['certificate', 'privateKey', 'ca'] as const).flatMap((part) => {
    const file = parts[part];
    if (file.found === 'text') return [];
    return [`${files[part]} ${file.found === 'nothing' ? 'is not there' : file.problem}`];
  });
  return problems.join(', ');
}

/** Best effort: on a disk that cannot be written it stays as it is. */
async function makePrivate(path: string): Promise<void> {
  try {
    if (((await stat(path)).mode & 0o077) !== 0) await chmod(path, 0o600);
  } catch {
    // The pair works all the same.
  }
}
