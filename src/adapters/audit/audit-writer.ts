import type { Stats } from 'node:fs';
import { constants, type FileHandle, readFile, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CHAIN_BEGIN, type ChainEnd, type LineContent, nextLine } from '../../domain/audit/line.js';
import { type AuditLimits, type ClosedFile, planPruning, rotates } from '../../domain/audit/retention.js';
import type { Clock } from '../../ports/clock.js';
import { createFile, ensureFolder, exists, syncFolder } from '../files/durable-file.js';
import { closedFiles, closedName, readAt, readEnd, sha256, tornName, writeAt } from './audit-files.js';

export type OpenFile = (path: string, flags: number, mode: number) => Promise<FileHandle>;

export interface AuditWriterOptions {
  /** Path of `audit.log`. */
  readonly file: string;
  readonly clock: Clock;
  readonly limits: AuditLimits;
  /** Reading of the monotonic clock from which lines count their offsets. */
  readonly startedAt: number;
  readonly openFile: OpenFile;
  readonly report: (event: AuditEvent) => void;
}

export type AuditEvent =
  /** The torn end of the file was moved to `file`. */
  | { readonly event: 'recovered'; readonly file: string; readonly bytes: number }
  /** Lines that were durable are not there any more. */
  | { readonly event: 'lost'; readonly problem: string }
  /** A file that was to be removed cannot be; it is tried again at the next start. */
  | { readonly event: 'not_pruned'; readonly problem: string };

/** How far a file is durable. */
export interface DurableEnd {
  readonly size: number;
  readonly end: ChainEnd;
}

const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK;
const mode = 0o600;

/** A clock that a machine starts with may be years off, and is set right within minutes: before, nothing is old. */
const SETTLED_MS = 60 * 60 * 1000;

/**
 * The open file. Whatever throws, an fsync above all, leaves it dead: it is closed, nothing more goes through it, and another one is
 * opened, which looks at what is there (the kernel may have dropped what it could not write, and calls it clean).
 */
export class AuditWriter {
  readonly #options: AuditWriterOptions;
  #handle: FileHandle;
  #durable: DurableEnd = { size: 0, end: CHAIN_BEGIN };
  #closed: readonly ClosedFile[];

  private constructor(options: AuditWriterOptions, handle: FileHandle, closed: readonly ClosedFile[]) {
    this.#options = options;
    this.#handle = handle;
    this.#closed = closed;
  }

  /** `known` is where the one before was when it died. Errors are those of the system calls. */
  static async open(options: AuditWriterOptions, known: DurableEnd | undefined): Promise<AuditWriter> {
    const { file, openFile } = options;
    await ensureFolder(dirname(file));
    const closed = await closedFiles(file);
    const handle = await openFile(file, flags, mode);
    const writer = new AuditWriter(options, handle, closed);
    try {
      await syncFolder(dirname(file));
      await writer.#recover(known);
      return writer;
    } catch (error) {
      await writer.close();
      throw error;
    }
  }

  get durable(): DurableEnd {
    return this.#durable;
  }

  /** Whether the path still leads to what is open: others may remove or rename it, and lines would go where nobody finds them. */
  async isInPlace(): Promise<boolean> {
    const [own, named] = await Promise.all([this.#handle.stat(), stat(this.#options.file).catch(() => undefined)]);
    return named !== undefined && named.ino === own.ino && named.dev === own.dev;
  }

  /** Durable when it resolves. */
  async write(contents: readonly LineContent[]): Promise<void> {
    if (rotates(this.#durable.size, this.#options.limits)) await this.#rotate();
    await this.#prune();
    await this.#put(contents);
  }

  async close(): Promise<void> {
    // After an error of its own this may fail too, and there is nothing left to do.
    await this.#handle.close().catch(() => {});
  }

  async #recover(known: DurableEnd | undefined): Promise<void> {
    const { size: found, mtimeMs } = await this.#stat();
    const size = known === undefined ? found : await this.#withdraw(found, known);
    const last = await readEnd(this.#handle, size);
    const former = this.#closed.at(-1);
    const end = last?.end ?? former?.end ?? CHAIN_BEGIN;
    if (known !== undefined && known.end.digest !== end.digest) {
      const problem = `line ${known.end.sequence} was durable, and the last one that is there is ${end.sequence}`;
      this.#options.report({ event: 'lost', problem });
    }
    // Numbers are not used twice, also where lines are lost: the check of the chain then says so.
    this.#durable = { size: last?.size ?? 0, end: known?.end ?? end };
    const rotated = this.#durable.size === 0 && former !== undefined ? [this.#rotatedTo(former.name)] : [];
    const torn = size - this.#durable.size;
    if (torn > 0) await this.#setAside(torn, Math.trunc(mtimeMs), rotated);
    else if (rotated.length > 0) await this.#put(rotated);
  }

  async #stat(): Promise<Stats> {
    const facts = await this.#handle.stat();
    if (!facts.isFile()) throw new Error('it is not a regular file');
    return facts;
  }

  /** Whatever stands behind the last durable line was refused to those who asked for it. */
  async #withdraw(found: number, { size, end }: DurableEnd): Promise<number> {
    if (found <= size) return found;
    const last = await readEnd(this.#handle, size);
    const isOurs = size === 0 || (last?.size === size && last.end.digest === end.digest);
    if (!isOurs) return found;
    await this.#handle.truncate(size);
    await this.#handle.datasync();
    return size;
  }

  /** A crash in between leaves a torn end again, or nothing to do. */
  async #setAside(bytes: number, changedAt: number, first: readonly LineContent[]): Promise<void> {
    const torn = await readAt(this.#handle, this.#durable.size, bytes);
    const file = await this.#keep(torn, changedAt);
    await this.#put([...first, { line: 'recovered', file, bytes, digest: this.#durable.end.digest }]);
    await this.#handle.truncate(this.#durable.size);
    await this.#handle.datasync();
    this.#options.report({ event: 'recovered', file, bytes });
  }

  /** In a file named by the time of the last write, which is the same when this is tried again: on a full disk that is often. */
  async #keep(torn: Buffer, changedAt: number): Promise<string> {
    const { file } = this.#options;
    for (let time = changedAt; ; time++) {
      const name = tornName(file, time);
      const path = join(dirname(file), name);
      if (await createFile(path, torn, { signal: new AbortController().signal })) return name;
      if (torn.equals(await readFile(path))) return name;
    }
  }

  async #rotate(): Promise<void> {
    const { file, openFile } = this.#options;
    const { end } = this.#durable;
    const name = closedName(file, end.sequence);
    const path = join(dirname(file), name);
    // It would be replaced, and with it what happened.
    if (await exists(path)) throw new Error(`${name} is there already`);
    await this.#handle.close();
    await rename(file, path);
    this.#closed = [...this.#closed, { name, end }];
    this.#durable = { size: 0, end };
    this.#handle = await openFile(file, flags | constants.O_EXCL, mode);
    await syncFolder(dirname(file));
    await this.#put([this.#rotatedTo(name)]);
  }

  #rotatedTo(file: string): LineContent {
    const { sequence, digest } = this.#durable.end;
    return { line: 'rotated', file, last: sequence, digest };
  }

  async #prune(): Promise<void> {
    const { file, limits, report, clock } = this.#options;
    const isSettled = this.#uptime() >= SETTLED_MS;
    const pruning = planPruning(this.#closed, isSettled ? clock.now() : undefined, limits);
    if (pruning === undefined) return;
    await this.#put([{ line: 'pruned', to: pruning.to.sequence, digest: pruning.to.digest }]);
    this.#closed = this.#closed.slice(pruning.files.length);
    for (const name of pruning.files) {
      await unlink(join(dirname(file), name)).catch((error: unknown) => {
        report({ event: 'not_pruned', problem: `${name}: ${String(error)}` });
      });
    }
    await syncFolder(dirname(file));
  }

  async #put(contents: readonly LineContent[]): Promise<void> {
    const { bytes, end } = this.#render(contents);
    const { size } = this.#durable;
    await writeAt(this.#handle, size, bytes);
    await this.#handle.datasync();
    this.#durable = { size: size + bytes.length, end };
  }

  #render(contents: readonly LineContent[]): { readonly bytes: Buffer; readonly end: ChainEnd } {
    const times = { now: this.#options.clock.now(), offset: this.#uptime() };
    let { end } = this.#durable;
    const lines: string[] = [];
    for (const content of contents) {
      const next = nextLine(end, content, times, sha256);
      end = next.end;
      lines.push(`${next.text}\n`);
    }
    return { bytes: Buffer.from(lines.join('')), end };
  }

  #uptime(): number {
    const { clock, startedAt } = this.#options;
    return Math.max(0, clock.monotonic() - startedAt);
  }
}
