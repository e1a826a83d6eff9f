import { open, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { OpenFile } from '../../../../src/adapters/audit/audit-writer.js';
import { FileAuditLog, type FileAuditLogOptions } from '../../../../src/adapters/audit/file-audit-log.js';
import { FakeClock } from '../../../fakes/fake-clock.js';
import { FakeLogger } from '../../../fakes/fake-logger.js';

export const never = { signal: new AbortController().signal };

/** A log in a folder, not open yet. */
export function auditLogIn(folder: string, more: Partial<FileAuditLogOptions> = {}) {
  const clock = new FakeClock();
  const logger = new FakeLogger();
  const file = join(folder, 'audit.log');
  return { log: new FileAuditLog({ file, clock, logger, ...more }), clock, logger, file };
}

/** Names of the folder's files, sorted. */
export async function names(folder: string): Promise<readonly string[]> {
  return (await readdir(folder)).sort();
}

/** All lines of a file, parsed; fails when it does not end with one. */
export async function linesOf(file: string): Promise<readonly Record<string, unknown>[]> {
  const text = await readFile(file, 'utf8');
  if (text === '') return [];
  if (!text.endsWith('\n')) throw new Error(`${file} ends with a torn line`);
  return text
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** A disk whose calls fail as told, with an errno. */
export class FailingDisk {
  readonly #failing = new Map<string, { code: string; left: number; after: boolean }>();
  #opened = 0;

  /** How many times the file was opened. */
  get opened(): number {
    return this.#opened;
  }

  /** The next `times` calls fail; with `after` they do their work before, or a part of it. */
  fail(
    call: 'open' | 'write' | 'datasync' | 'truncate',
    code: string,
    { times = Number.POSITIVE_INFINITY, after = false } = {},
  ): void {
    this.#failing.set(call, { code, left: times, after });
  }

  mend(): void {
    this.#failing.clear();
  }

  readonly openFile: OpenFile = async (path, flags, mode) => {
    this.#opened++;
    this.#throwIf('open');
    const handle = await open(path, flags, mode);
    return new Proxy(handle, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        const apply = (args: readonly unknown[]): unknown => Reflect.apply(value, target, args);
        return (...args: readonly unknown[]) => this.#call(String(name), apply, args);
      },
    });
  };

  async #call(name: string, apply: (args: readonly unknown[]) => unknown, args: readonly unknown[]): Promise<unknown> {
    const failing = this.#failing.get(name);
    if (failing?.after === true && failing.left > 0) {
      // Of a write, only a part arrives.
      const [buffer, start, length, position] = args;
      const cut = name === 'write' ? [buffer, start, Math.ceil(Number(length) * 0.7), position] : args;
      await apply(cut);
    }
    this.#throwIf(name);
    return apply(args);
  }

  #throwIf(name: string): void {
    const failing = this.#failing.get(name);
    if (failing === undefined || failing.left <= 0) return;
    failing.left--;
    throw Object.assign(new Error(`${failing.code}: made to fail`), { code: failing.code });
  }
}
