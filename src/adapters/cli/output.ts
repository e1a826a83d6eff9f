import { once } from 'node:events';
import { styleText } from 'node:util';
import { stringify } from 'yaml';

export type OutputFormat = 'table' | 'json' | 'yaml';

/** Where a verb writes: data on `out`, everything else on `err`. */
export interface Console {
  out(text: string): void;
  err(text: string): void;
  /** Data that is no text; resolves when there may be more. */
  write(bytes: Uint8Array): Promise<void>;
  /** Colour is for terminals. */
  readonly colour: boolean;
  readonly interactive: boolean;
}

export function processConsole(): Console {
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    write: async (bytes) => {
      if (!process.stdout.write(bytes)) await once(process.stdout, 'drain');
    },
    colour: process.stdout.isTTY === true && process.env.NO_COLOR === undefined,
    interactive: process.stdout.isTTY === true,
  };
}

/** Columns two spaces apart, without a border, as kubectl prints them. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [header, ...rows];
  const widths = header.map((_, column) => all.reduce((widest, row) => Math.max(widest, (row[column] ?? '').length), 0));
  return all
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

export function structured(format: 'json' | 'yaml', value: unknown): string {
  return format === 'json'
    ? `${JSON.stringify(value, bigintsAsNumbers, 2)}\n`
    : stringify(JSON.parse(JSON.stringify(value, bigintsAsNumbers)));
}

/** Counters and revisions stay below 2^53 for some thousands of years. */
function bigintsAsNumbers(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? Number(value) : value;
}

export function paint(console: Console, style: 'red' | 'green' | 'yellow' | 'bold', text: string): string {
  return console.colour ? styleText(style, text, { validateStream: false }) : text;
}

/** `3s`, `5m`, `2h`, `4d`. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)}m`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)}h`;
  return `${Math.round(seconds / 86_400)}d`;
}

/** `1.5 MiB` */
export function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}
