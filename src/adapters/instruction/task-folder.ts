import { randomBytes } from 'node:crypto';
import { constants, type FileHandle, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { CallOptions } from '../../ports/call-options.js';
import type { TaskExit, TaskId, TaskOutput } from '../../ports/instruction/task-runner.js';
import { errnoOf } from '../files/errno.js';
import { readTextFile } from '../files/text-file.js';
import { type OutputCount, parseExitRecord } from './exit-record.js';

const GREATEST_EXIT_RECORD = 512;
const idForm = /^[0-9a-f]{64}$/;
/** Folders on their way out: renamed at once, so that none is ever half there under its id. */
const LEAVING = '.leaving-';

export function isTaskId(text: string): text is TaskId {
  return idForm.test(text);
}

/** The ids that have a folder, sorted. */
export async function listTasks(runs: string): Promise<readonly TaskId[]> {
  return (await namesIn(runs)).filter(isTaskId).sort();
}

/** What native/runner/task_folder.h lays out, read. Errors are those of the system calls. */
export class TaskFolder {
  readonly path: string;
  readonly #runs: string;
  readonly #id: TaskId;

  constructor(runs: string, id: TaskId) {
    this.path = join(runs, id);
    this.#runs = runs;
    this.#id = id;
  }

  /** Once true, the program may have run. */
  async hasStarted(): Promise<boolean> {
    return exists(join(this.path, 'started'));
  }

  /** The true end; undefined while there is none, and when what stands there is not whole. */
  async exit(options: CallOptions): Promise<TaskExit | undefined> {
    const file = await readTextFile(join(this.path, 'exit'), GREATEST_EXIT_RECORD, options);
    const record = file.found === 'text' ? parseExitRecord(file.text) : undefined;
    if (record === undefined) return undefined;
    const [stdout, stderr] = await Promise.all([this.#output('stdout', record.stdout), this.#output('stderr', record.stderr)]);
    return { ...record, kind: 'exited', stdout, stderr };
  }

  /** Nothing is at its id afterwards, also when the rest fails; a later call removes what was left. */
  async remove(): Promise<void> {
    try {
      await rename(this.path, join(this.#runs, `${LEAVING}${this.#id}-${randomBytes(8).toString('hex')}`));
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error;
    }
    for (const name of await namesIn(this.#runs)) {
      if (name.startsWith(LEAVING)) await rm(join(this.#runs, name), { recursive: true, force: true });
    }
  }

  /** What the file no longer has counts as dropped. */
  async #output(name: string, { kept, dropped }: OutputCount): Promise<TaskOutput> {
    const bytes = await readStart(join(this.path, name), kept);
    return { bytes, dropped: dropped + kept - bytes.length };
  }
}

async function readStart(path: string, length: number): Promise<Uint8Array> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch {
    return new Uint8Array();
  }
  try {
    const { size } = await file.stat();
    const buffer = Buffer.alloc(Math.min(length, size));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
    return buffer.subarray(0, bytesRead);
  } catch {
    return new Uint8Array();
  } finally {
    await file.close();
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw error;
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    throw error;
  }
}
