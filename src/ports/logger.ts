import type { LogLevel } from '../domain/config/model.js';

/** What a line is about. Errors, bigints and nested values are fine; what looks like a secret by its name is not shown. */
export type LogFields = Readonly<Record<string, unknown>>;

/** The daemon's own log. No call throws, waits, or fails for want of a reader. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A logger whose lines carry `fields` as well. */
  child(fields: LogFields): Logger;
  /** From now on lines below `level` are dropped, by this logger, its children and the one that it is a child of. */
  setLevel(level: LogLevel): void;
}
