import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { type DestinationStream, pino } from 'pino';
import { type LogLevel, logLevels } from '../../domain/config/model.js';
import type { LogFields, Logger } from '../../ports/logger.js';
import { plainFields } from './log-fields.js';
import { terminalLine } from './terminal-line.js';

/** A reader of stdout that stands still costs at most this much memory; lines that come on top are dropped. */
const greatestBacklog = 8 * 1024 * 1024;

interface Shared {
  readonly pino: pino.Logger;
  /** Of all loggers of the family: pino's own children keep the level that they were made with. */
  least: number;
}

/** JSON lines by pino: `level`, `time`, the fields, `msg`. */
export class PinoLogger implements Logger {
  readonly #shared: Shared;
  readonly #fields: LogFields;

  private constructor(shared: Shared, fields: LogFields) {
    this.#shared = shared;
    this.#fields = fields;
  }

  static to(stream: DestinationStream, level: LogLevel): PinoLogger {
    const options = { level: 'trace', base: null, formatters: { level: (label: string) => ({ level: label }) } };
    const root = pino({ ...options, timestamp: pino.stdTimeFunctions.isoTime }, stream);
    return new PinoLogger({ pino: root, least: logLevels.indexOf(level) }, {});
  }

  debug(message: string, fields?: LogFields): void {
    this.#log('debug', message, fields);
  }

  info(message: string, fields?: LogFields): void {
    this.#log('info', message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.#log('warn', message, fields);
  }

  error(message: string, fields?: LogFields): void {
    this.#log('error', message, fields);
  }

  child(fields: LogFields): PinoLogger {
    return new PinoLogger(this.#shared, { ...this.#fields, ...plainFields(fields) });
  }

  setLevel(level: LogLevel): void {
    this.#shared.least = logLevels.indexOf(level);
  }

  #log(level: 'debug' | 'info' | 'warn' | 'error', message: string, fields: LogFields = {}): void {
    if (logLevels.indexOf(level) < this.#shared.least) return;
    this.#shared.pino[level]({ ...this.#fields, ...plainFields(fields) }, message);
  }
}

export interface LoggerOptions {
  readonly level: LogLevel;
  /** 1, stdout, unless given. */
  readonly fd?: number;
  /** Whether a terminal gets colours; `NO_COLOR` is the caller's to look at. */
  readonly colour?: boolean;
}

/** To a terminal lines for people, at once; to anything else JSON lines, without ever waiting for the reader. */
export function openLogger({ level, fd = 1, colour = true }: LoggerOptions): PinoLogger {
  return PinoLogger.to(isatty(fd) ? terminal(fd, colour) : lines(fd), level);
}

function lines(fd: number): DestinationStream {
  const stream = pino.destination({ fd, sync: false, maxLength: greatestBacklog });
  // pino sees to a broken pipe; a full disk behind stdout, or a terminal that is gone, must not end the daemon either.
  stream.on('error', () => {});
  return stream;
}

function terminal(fd: number, colour: boolean): DestinationStream {
  return {
    write: (json) => {
      const bytes = Buffer.from(terminalLine(json, { colour }));
      try {
        for (let written = 0; written < bytes.length; ) written += writeSync(fd, bytes, written);
      } catch {
        // The terminal was closed, or takes no more: nobody reads this line.
      }
    },
  };
}
