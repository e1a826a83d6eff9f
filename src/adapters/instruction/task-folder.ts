import { randomBytes } from 'node:crypto';
import { constants, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { CallOptions } from '../../ports/call-options.js';
import type { TailRequest, TaskExit, TaskId, TaskOutput, TaskTail } from '../../ports/instruction/task-runner.js';
import { errnoOf } from '../files/errno.js';
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

  /** The true end; undefined while there is none, and when what stands there is not whole, for ever then. */
  async exit({ signal }: CallOptions): Promise<TaskExit | undefined> {
    signal.throwIfAborted();
    const text = Buffer.from(await readStart(join(this.path, 'exit'), GREATEST_EXIT_RECORD)).toString('latin1');
    const record = parseExitRecord(text);
    if (record === undefined) return undefined;
    const [stdout, stderr] = await Promise.all([this.#output('stdout', record.stdout), this.#output('stderr', record.stderr)]);
    return { ...record, kind: 'exited', stdout, stderr };
  }

  /** The runner writes what it keeps at once. */
  async tail({ stream, from, most }: TailRequest): Promise<TaskTail> {
    const tail = await readWindow(join(this.path, stream), (size) => {
      const start = Math.max(from, size - most);
      return { start, length: size - start };
    });
    return tail === undefined ? { from, bytes: new Uint8Array() } : { from: tail.start, bytes: tail.bytes };
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

/** There is nothing to be read, now or later. That there are no descriptors left, for one, says nothing of a file. */
const nothingThere: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'EISDIR', 'ELOOP', 'ENXIO', 'EIO']);

/** The first `length` bytes, or what there is of them. */
async function readStart(path: string, length: number): Promise<Uint8Array> {
  const read = await readWindow(path, (size) => ({ start: 0, length: Math.min(length, size) }));
  return read?.bytes ?? new Uint8Array();
}

interface Window {
  readonly start: number;
  readonly length: number;
}

/** Undefined when there is no such file, or nothing in it there. */
async function readWindow(
  path: string,
  windowOf: (size: number) => Window,
): Promise<{ readonly start: number; readonly bytes: Uint8Array } | undefined> {
  try {
    // Whatever stands in its place, a FIFO or a link, holds nothing up and leads nowhere.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    try {
      const { start, length } = windowOf((await file.stat()).size);
      if (length <= 0) return undefined;
      const buffer = Buffer.alloc(length);
      const { bytesRead } = await file.read(buffer, 0, length, start);
      return { start, bytes: buffer.subarray(0, bytesRead) };
    } finally {
      await file.close();
    }
  } catch (error) {
    if (nothingThere.has(errnoOf(error) ?? '')) return undefined;
    throw error;
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
