import { allowedDirectives, refusalOf, type Value } from './directives.js';

/**
 * dnsmasq 2.90 reads lines into a buffer of 1,025 bytes and takes the rest of a longer one for a line of its own: a comment could hide a
 * directive.
 */
const MAX_LINE_BYTES = 1_000;
const MOST_PROBLEMS = 3;

/**
 * What is wrong with a configuration, a few places at most; empty: it says nothing but what is allowed. Read as dnsmasq reads it (read_file
 * in its option.c), and where that is lenient, refused: quotes, escapes and control characters have no use in what is allowed.
 */
export function judgeContents(contents: string): readonly string[] {
  const problems: string[] = [];
  for (const [at, line] of contents.split('\n').entries()) {
    const problem = judgeLine(line);
    if (problem !== undefined) problems.push(`line ${at + 1}: ${problem}`);
    if (problems.length === MOST_PROBLEMS) break;
  }
  return problems;
}

function judgeLine(line: string): string | undefined {
  if (!line.isWellFormed()) return 'text that is no Unicode';
  if (byteLength(line) > MAX_LINE_BYTES) return `longer than ${MAX_LINE_BYTES} bytes`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is looked for
  const control = /[\0-\x08\x0a-\x1f\x7f]/.exec(line)?.[0];
  if (control !== undefined) return `a control character, number ${control.charCodeAt(0)}`;
  const directive = withoutComment(line)
    .replaceAll('\t', ' ')
    .replace(/^ +| +$/g, '');
  return directive === '' ? undefined : judgeDirective(directive);
}

/** A comment begins at the start of a line or after a blank. */
function withoutComment(line: string): string {
  const start = /(?:^|[ \t])#/.exec(line);
  return start === null ? line : line.slice(0, start.index);
}

function judgeDirective(directive: string): string | undefined {
  const equals = directive.indexOf('=');
  const name = (equals < 0 ? directive : directive.slice(0, equals)).replace(/ +$/, '');
  const value = equals < 0 ? undefined : directive.slice(equals + 1).replace(/^ +/, '');
  const kind = allowedDirectives.get(name);
  if (kind === undefined) return judgeOther(name);
  return judgeValue(name, value, kind);
}

/** One that tries to look like another is named by what it would be. */
function judgeOther(name: string): string {
  const plain = /[a-zA-Z][a-zA-Z0-9-]*/.exec(name)?.[0]?.toLowerCase();
  if (plain === undefined) return 'no directive';
  if (plain === name || name === `--${plain}`) return `${plain} is refused: ${refusalOf(plain)}`;
  return `no directive that is allowed, though like ${plain}: written as a lone name, or as name=value`;
}

function judgeValue(name: string, value: string | undefined, kind: Value): string | undefined {
  if (value === undefined || value === '') return kind === 'some' ? `${name} needs a value` : undefined;
  if (kind === 'none') return `${name} takes no value`;
  const strange = /[^ !#-<>-[\]-~]/u.exec(value)?.[0];
  if (strange !== undefined) return `${name} has ${JSON.stringify(strange)} in its value`;
  // dnsmasq looks the domain up in resolv.conf.
  if (name === 'domain' && value.startsWith('#')) return 'domain=# is refused: it reads another file';
  return undefined;
}

/** In UTF-8. */
function byteLength(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x1_0000 ? 3 : 4;
  }
  return bytes;
}
