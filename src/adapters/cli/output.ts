import { once } from 'node:events';
import { styleText } from 'node:util';
import { type CreateNodeOptions, type DocumentOptions, type SchemaOptions, stringify, type ToStringOptions } from 'yaml';
import { printable, printableLines } from '../../domain/kernel/printable.js';

/** Of what is shown in colour. */
type Style = 'red' | 'green' | 'yellow' | 'bold';

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

/** Redraws what is on the screen from its beginning. */
export const CLEAR_SCREEN = '\u001b[H\u001b[2J';
const ESCAPE = '\u001b';
const COLOUR = new RegExp(`(${ESCAPE}\\[\\d+m)`);

/** Lets no text through that moves the cursor: whatever a verb forgets to look at, a peer has no terminal. Colours are our own. */
export function guarded(console: Console): Console {
  const guard = (text: string) => {
    if (text === CLEAR_SCREEN) return text;
    if (!console.colour) return printableLines(text);
    return text
      .split(COLOUR)
      .map((part) => (COLOUR.test(part) ? part : printableLines(part)))
      .join('');
  };
  return {
    out: (text) => console.out(guard(text)),
    err: (text) => console.err(guard(text)),
    write: (bytes) => console.write(bytes),
    colour: console.colour,
    interactive: console.interactive,
  };
}

/** A cell in colour: `shown` is `text` with what makes the colour. */
export interface Painted {
  readonly text: string;
  readonly shown: string;
}

/** Columns two spaces apart, without a border, as kubectl prints them. Each row is one line, whatever its cells hold. */
export function table(header: readonly string[], rows: readonly (readonly (string | Painted)[])[]): string {
  const all = [header, ...rows].map((row) => row.map(cellOf));
  const widths = header.map((_, column) => all.reduce((widest, row) => Math.max(widest, (row[column]?.text ?? '').length), 0));
  return all
    .map((row) => row.map(({ text, shown }, column) => shown + ' '.repeat((widths[column] ?? 0) - text.length)).join('  '))
    .map((line) => `${line.trimEnd()}\n`)
    .join('');
}

function cellOf(cell: string | Painted): Painted {
  if (typeof cell !== 'string') return cell;
  const text = printable(cell);
  return { text, shown: text };
}

export function structured(format: 'json' | 'yaml', value: unknown): string {
  return format === 'json' ? json(value, 2) : yaml(JSON.parse(JSON.stringify(value, bigintsAsNumbers)));
}

/** One line, unless `indent` is given. What cannot be printed is escaped, so that it is the same value. */
export function json(value: unknown, indent?: number): string {
  return `${printableLines(JSON.stringify(value, bigintsAsNumbers, indent))}\n`;
}

type YamlOptions = DocumentOptions & SchemaOptions & CreateNodeOptions & ToStringOptions;

/** As `json`: only text in double quotes can have something escaped. */
export function yaml(value: unknown, options: YamlOptions = {}): string {
  const text = stringify(value, options);
  if (printableLines(text) === text) return text;
  return printableLines(stringify(value, { ...options, defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'QUOTE_DOUBLE' }));
}

/** Counters and revisions stay below 2^53 for some thousands of years. */
function bigintsAsNumbers(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? Number(value) : value;
}

export function painted(console: Console, style: Style, text: string): Painted {
  return { text, shown: paint(console, style, text) };
}

export function paint(console: Console, style: Style, text: string): string {
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
