import { type LogLevel, logLevels } from '../../src/domain/config/model.js';
import type { LogFields, Logger } from '../../src/ports/logger.js';

export interface LoggedLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: LogFields;
}

interface Shared {
  readonly lines: LoggedLine[];
  level: LogLevel;
}

/** Keeps its lines, and those of its children. */
export class FakeLogger implements Logger {
  readonly #shared: Shared;
  readonly #fields: LogFields;

  constructor(shared: Shared = { lines: [], level: 'trace' }, fields: LogFields = {}) {
    this.#shared = shared;
    this.#fields = fields;
  }

  get lines(): readonly LoggedLine[] {
    return this.#shared.lines;
  }

  debug(message: string, fields: LogFields = {}): void {
    this.#log('debug', message, fields);
  }

  info(message: string, fields: LogFields = {}): void {
    this.#log('info', message, fields);
  }

  warn(message: string, fields: LogFields = {}): void {
    this.#log('warn', message, fields);
  }

  error(message: string, fields: LogFields = {}): void {
    this.#log('error', message, fields);
  }

  child(fields: LogFields): FakeLogger {
    return new FakeLogger(this.#shared, { ...this.#fields, ...fields });
  }

  setLevel(level: LogLevel): void {
    this.#shared.level = level;
  }

  /** `warn message`, one a line; without fields, from `least` on. */
  dump(least: LogLevel = 'trace'): string {
    const from = logLevels.indexOf(least);
    return this.lines
      .filter(({ level }) => logLevels.indexOf(level) >= from)
      .map(({ level, message }) => `${level} ${message}`)
      .join('\n');
  }

  #log(level: LoggedLine['level'], message: string, fields: LogFields): void {
    if (logLevels.indexOf(level) < logLevels.indexOf(this.#shared.level)) return;
    this.#shared.lines.push({ level, message, fields: { ...this.#fields, ...fields } });
  }
}
