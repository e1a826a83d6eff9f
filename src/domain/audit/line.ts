import type { AuditHead, AuditRecord } from './model.js';

/** What stands in a line besides number, times and the digest of the line before. */
export type LineContent =
  | AuditRecord
  /** The first line of every file but the very first: where the former one ended, and its name since then. */
  | { readonly line: 'rotated'; readonly file: string; readonly last: bigint; readonly digest: string }
  /** What a crash had left behind the line of this digest was moved to `file`. */
  | { readonly line: 'recovered'; readonly file: string; readonly bytes: number; readonly digest: string }
  /** Lines up to and with `to`, whose digest this is, may be gone. */
  | { readonly line: 'pruned'; readonly to: bigint; readonly digest: string };

export interface AuditLine {
  /** 1, 2, 3 … over all files. */
  readonly sequence: bigint;
  /** Wall clock in milliseconds, but never less than in the line before. */
  readonly time: number;
  /** Milliseconds of the monotonic clock since the log was opened: shows where the wall clock has jumped. */
  readonly offset: number;
  readonly content: LineContent;
  /** SHA-256 in hex of the line before, its bytes without the line feed. */
  readonly previous: string;
}

/** Where the next line goes on. */
export interface ChainEnd extends AuditHead {
  readonly time: number;
}

export const CHAIN_BEGIN: ChainEnd = { sequence: 0n, digest: '0'.repeat(64), time: 0 };

/** Of what others sent; their digest tells the rest. Seven such fields, each character as a six byte escape, make 21 KiB. */
const MAX_FIELD = 512;
/** So that whoever reads a file can tell a line from what is none. */
export const MAX_LINE_BYTES = 64 * 1024;

export interface LineClock {
  readonly now: number;
  readonly offset: number;
}

/** The text of the line after `end`, without line feed, and where the chain then ends. `digestOf` is SHA-256 of the UTF-8 bytes in hex. */
export function nextLine(
  end: ChainEnd,
  content: LineContent,
  { now, offset }: LineClock,
  digestOf: (text: string) => string,
): { readonly text: string; readonly end: ChainEnd } {
  const sequence = end.sequence + 1n;
  const time = Math.max(Math.trunc(now), end.time);
  const text = renderLine({ sequence, time, offset: Math.trunc(offset), content, previous: end.digest });
  return { text, end: { sequence, time, digest: digestOf(text) } };
}

function renderLine({ sequence, time, offset, content, previous }: AuditLine): string {
  return JSON.stringify({ seq: Number(sequence), time, offset, ...fieldsOf(content), prev: previous });
}

function fieldsOf(content: LineContent): Readonly<Record<string, unknown>> {
  switch (content.line) {
    case 'decision':
    case 'outcome': {
      const { line, who, tag, type, payloadDigest, rule, result } = content;
      const rest = { who, tag, type, payload: payloadDigest, rule, result };
      return { line, ...Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, clipped(value)])) };
    }
    case 'rotated':
      return { line: content.line, file: content.file, last: Number(content.last), digest: content.digest };
    case 'recovered':
      return { line: content.line, file: content.file, bytes: content.bytes, digest: content.digest };
    case 'pruned':
      return { line: content.line, to: Number(content.to), digest: content.digest };
  }
}

function clipped(text: string): string {
  return text.length <= MAX_FIELD ? text : `${text.slice(0, MAX_FIELD)}… (${text.length} characters)`;
}

/** Undefined for what `nextLine` has not made. */
export function parseLine(text: string): AuditLine | undefined {
  const fields = parseObject(text);
  if (fields === undefined) return undefined;
  const { seq, time, offset, prev } = fields;
  const content = contentOf(fields);
  if (!isCount(seq) || seq === 0 || !isCount(time) || !isCount(offset) || !isDigest(prev) || content === undefined)
    return undefined;
  return { sequence: BigInt(seq), time, offset, content, previous: prev };
}

type Fields = Readonly<Record<string, unknown>>;

function parseObject(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function contentOf(fields: Fields): LineContent | undefined {
  const { line, file, last, bytes, to, digest } = fields;
  if (line === 'decision' || line === 'outcome') return recordOf(line, fields);
  if (!isDigest(digest)) return undefined;
  if (line === 'rotated' && typeof file === 'string' && isCount(last)) return { line, file, last: BigInt(last), digest };
  if (line === 'recovered' && typeof file === 'string' && isCount(bytes)) return { line, file, bytes, digest };
  if (line === 'pruned' && isCount(to)) return { line, to: BigInt(to), digest };
  return undefined;
}

function recordOf(line: AuditRecord['line'], { who, tag, type, payload, rule, result }: Fields): AuditRecord | undefined {
  if (typeof who !== 'string' || typeof tag !== 'string' || typeof type !== 'string') return undefined;
  if (typeof payload !== 'string' || typeof rule !== 'string' || typeof result !== 'string') return undefined;
  return { line, who, tag, type, payloadDigest: payload, rule, result };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function isDigest(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
}
