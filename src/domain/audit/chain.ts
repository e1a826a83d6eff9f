import { type AuditLine, CHAIN_BEGIN, parseLine } from './line.js';
import type { AuditHead } from './model.js';

/** A line as it was found. */
export interface FoundLine {
  readonly file: string;
  /** In its file, from 1. */
  readonly number: number;
  /** Without line feed. */
  readonly text: string;
  /** SHA-256 in hex of the bytes that were read, which need not be valid UTF-8. */
  readonly digest: string;
}

export type BreakKind =
  /** The first lines are gone, and no line says that they were pruned. */
  | 'beginning'
  | 'unreadable'
  | 'missing'
  | 'out_of_order'
  /** The next line carries another digest. */
  | 'changed'
  /** The last lines are gone: somebody knows a later head. */
  | 'cut'
  /** Somebody knows another line of this number: the log was replaced, or its last line changed. */
  | 'other_head';

/** Where the chain breaks first. */
export interface ChainBreak {
  readonly kind: BreakKind;
  readonly file: string;
  /** In its file; that of the last line when what is wrong is behind it, 0 when there is none. */
  readonly number: number;
  /** The first line that is not as it was written. */
  readonly sequence: bigint;
  /** A sentence without a full stop. */
  readonly problem: string;
}

export interface ChainReport {
  /** All that were found, also behind a break. */
  readonly lines: number;
  /** The number of the oldest line. */
  readonly first: bigint | undefined;
  /** The last line that follows the one before it, up to the break. */
  readonly head: AuditHead | undefined;
  /** The last of the lines that are gone as they should: the check begins after it. Undefined when it began at line 1. */
  readonly anchor: AuditHead | undefined;
  /** Ends that crashes had torn off, each set aside in a file. */
  readonly recovered: number;
  /** Whether the known head was met; a pruned one never is. */
  readonly knownMet: boolean;
  readonly break: ChainBreak | undefined;
}

/** Of a check that has come so far. */
export interface ChainCheck {
  readonly known: AuditHead | undefined;
  readonly knownMet: boolean;
  readonly lines: number;
  readonly first: bigint | undefined;
  /** What the first line says of the one before it. */
  readonly anchor: AuditHead;
  readonly pruned: AuditHead | undefined;
  readonly recovered: number;
  readonly last: (AuditHead & Pick<FoundLine, 'file' | 'number'>) | undefined;
  readonly break: ChainBreak | undefined;
}

/** `known` is a head that somebody else has kept: without one a cut tail does not show. */
export function beginCheck(known: AuditHead | undefined): ChainCheck {
  const nothing = { first: undefined, pruned: undefined, last: undefined, break: undefined };
  return { known, knownMet: false, lines: 0, anchor: CHAIN_BEGIN, recovered: 0, ...nothing };
}

/** The check, one line on. Lines come in the order of the files, oldest first. */
export function checkLine(check: ChainCheck, found: FoundLine): ChainCheck {
  const counted = { ...check, lines: check.lines + 1 };
  const line = parseLine(found.text);
  if (check.break !== undefined) return { ...counted, break: named(check.break, line?.sequence) };
  if (line === undefined) {
    const sequence = (check.last?.sequence ?? 0n) + 1n;
    return { ...counted, break: breakAt('unreadable', found, sequence, 'this is no line of an audit log') };
  }
  const broken = check.last === undefined ? breakOfFirst(line, found) : breakAfter(check.last, line, found);
  if (broken !== undefined) return { ...counted, break: broken };
  return grown(counted, line, found);
}

export function endCheck(check: ChainCheck): ChainReport {
  const { lines, first, last, anchor, recovered, knownMet } = check;
  const head = last === undefined ? undefined : { sequence: last.sequence, digest: last.digest };
  const found = check.break ?? breakOfBeginning(check) ?? breakOfEnd(check);
  const shown = anchor.sequence === 0n || found?.kind === 'beginning' ? undefined : anchor;
  return { lines, first, head, anchor: shown, recovered, knownMet, break: found };
}

function grown(check: ChainCheck, line: AuditLine, found: FoundLine): ChainCheck {
  const { sequence, content, previous } = line;
  const { digest, file, number } = found;
  const isFirst = check.first === undefined;
  const asked = check.known?.sequence === sequence;
  const known = check.known?.digest;
  return {
    ...check,
    first: check.first ?? sequence,
    anchor: isFirst ? { sequence: sequence - 1n, digest: previous } : check.anchor,
    pruned: content.line === 'pruned' ? { sequence: content.to, digest: content.digest } : check.pruned,
    recovered: check.recovered + (content.line === 'recovered' ? 1 : 0),
    knownMet: check.knownMet || asked,
    last: { sequence, digest, file, number },
    break:
      asked && digest !== known
        ? breakAt('other_head', found, sequence, `line ${sequence} is not the one that is known`)
        : undefined,
  };
}

function breakOfFirst({ sequence, previous }: AuditLine, found: FoundLine): ChainBreak | undefined {
  if (sequence !== 1n || previous === CHAIN_BEGIN.digest) return undefined;
  return breakAt('beginning', found, 1n, 'line 1 follows another line');
}

function breakAfter(last: NonNullable<ChainCheck['last']>, line: AuditLine, found: FoundLine): ChainBreak | undefined {
  const expected = last.sequence + 1n;
  const { sequence } = line;
  if (sequence > expected) {
    const missing = sequence === expected + 1n ? `line ${expected} is` : `lines ${expected} to ${sequence - 1n} are`;
    return breakAt('missing', found, expected, `${missing} missing before line ${sequence}`);
  }
  if (sequence < expected)
    return breakAt('out_of_order', found, expected, `line ${sequence} stands where line ${expected} belongs`);
  if (line.previous === last.digest) return undefined;
  return breakAt('changed', last, last.sequence, `line ${last.sequence} is not as line ${sequence} knows it`);
}

/** What looked like missing lines may turn out, further on, to be lines that were moved, or one whose number was changed. */
function named(broken: ChainBreak, sequence: bigint | undefined): ChainBreak {
  if (broken.kind !== 'missing' || sequence === undefined) return broken;
  const { sequence: expected } = broken;
  if (sequence === expected) return { ...broken, kind: 'out_of_order', problem: `line ${expected} stands behind later ones` };
  return broken;
}

function breakOfBeginning({ anchor, pruned, last }: ChainCheck): ChainBreak | undefined {
  if (last === undefined || anchor.sequence === 0n) return undefined;
  const place = { file: last.file, number: 0 };
  const upTo = pruned?.sequence ?? 0n;
  if (upTo < anchor.sequence) {
    const gone = `lines ${upTo + 1n} to ${anchor.sequence} are gone, and no line says that they were pruned`;
    return breakAt('beginning', place, upTo + 1n, gone);
  }
  // Of several files that were to go, some may still be there.
  if (upTo > anchor.sequence || pruned?.digest === anchor.digest) return undefined;
  return breakAt('beginning', place, upTo, `line ${upTo} was pruned as another than line ${upTo + 1n} knows it`);
}

function breakOfEnd({ known, last, anchor }: ChainCheck): ChainBreak | undefined {
  if (known === undefined) return undefined;
  const end = last?.sequence ?? 0n;
  const place = { file: last?.file ?? '', number: last?.number ?? 0 };
  if (known.sequence > end) {
    return breakAt(
      'cut',
      place,
      end + 1n,
      `lines ${end + 1n} to ${known.sequence}, which are known to have been there, are gone`,
    );
  }
  if (known.sequence !== anchor.sequence || known.digest === anchor.digest) return undefined;
  return breakAt('other_head', place, known.sequence, `line ${known.sequence} is not the one that is known`);
}

function breakAt(
  kind: BreakKind,
  { file, number }: Pick<FoundLine, 'file' | 'number'>,
  sequence: bigint,
  problem: string,
): ChainBreak {
  return { kind, file, number, sequence, problem };
}
