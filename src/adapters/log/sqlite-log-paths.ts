import { readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** Every file of a log that is kept in `file`. All of them are 0600 and stand in one folder. */
export class LogPaths {
  readonly file: string;
  readonly folder: string;
  /** Commits that are not in the file yet. */
  readonly wal: string;
  /** The newest acknowledged revision, see `Witness`. */
  readonly witness: string;
  /** Made here, then renamed: a file under its final name is whole. */
  readonly fresh: string;
  readonly copying: string;
  readonly restoring: string;

  constructor(file: string) {
    this.file = file;
    this.folder = dirname(file);
    this.wal = `${file}-wal`;
    this.witness = `${file}.head`;
    this.fresh = `${file}.new`;
    this.copying = `${file}.copying`;
    this.restoring = `${file}.restoring`;
  }

  copy(time: number): string {
    return `${this.file}.copy-${utc(time)}`;
  }

  aside(time: number): string {
    return `${this.file}.corrupt-${utc(time)}`;
  }

  /** Newest first. */
  copies(): readonly { readonly file: string; readonly time: number }[] {
    const prefix = `${basename(this.file)}.copy-`;
    return names(this.folder)
      .filter((name) => name.startsWith(prefix))
      .map((name) => ({ file: join(this.folder, name), time: fromUtc(name.slice(prefix.length)) }))
      .filter(({ time }) => Number.isFinite(time))
      .sort((a, b) => b.time - a.time);
  }
}

function names(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** `20260131T120000Z`: sorts as text and needs no quoting in a shell. */
function utc(time: number): string {
  return new Date(time).toISOString().replaceAll(/[-:]|\.\d+/g, '');
}

function fromUtc(text: string): number {
  const [, date, hours, minutes, seconds] = /^(\d{8})T(\d\d)(\d\d)(\d\d)Z$/.exec(text) ?? [];
  if (date === undefined) return Number.NaN;
  return Date.parse(`${date.slice(0, 4)}-${date.slice(4, 6)}-${date.slice(6)}T${hours}:${minutes}:${seconds}Z`);
}
