/** A line of apt's sources, a suite of it. */
export interface Source {
  /** File that names it. */
  readonly file: string;
  readonly uri: string;
  readonly suite: string;
  /** Whether apt is told to take it without a signature. */
  readonly isTrusted: boolean;
}

const NO = new Set(['no', 'false', 'off', '0']);
const isYes = (value: string | undefined) => value !== undefined && !NO.has(value.toLowerCase());

/** sources.list(5), "One-line-style format": `deb [options] uri suite [component...]`; others are left out. */
export function readSourceLines(file: string, text: string): readonly Source[] {
  return text.split('\n').flatMap((line) => {
    const [, options = '', uri, suite] = /^\s*deb\s+(?:\[([^\]]*)\]\s+)?([a-z+]+:\S+)\s+(\S+)/.exec(line) ?? [];
    if (uri === undefined || suite === undefined) return [];
    return [{ file, uri, suite, isTrusted: isYes(/(?:^|\s)trusted=(\S+)/.exec(options)?.[1]) }];
  });
}

/** sources.list(5), "DEB822-style format": paragraphs of fields, each value may go on in lines that begin with a blank. */
export function readSourceParagraphs(file: string, text: string): readonly Source[] {
  const lines = text.split('\n').filter((line) => !line.startsWith('#'));
  return lines
    .join('\n')
    .split(/\n\s*\n/)
    .flatMap((paragraph) => {
      const fields = fieldsOf(paragraph);
      const words = (name: string) => (fields.get(name) ?? '').split(/\s+/).filter((word) => word !== '');
      if (!words('types').includes('deb') || !isYes(fields.get('enabled') ?? 'yes')) return [];
      const isTrusted = isYes(fields.get('trusted'));
      return words('uris').flatMap((uri) => words('suites').map((suite) => ({ file, uri, suite, isTrusted })));
    });
}

function fieldsOf(paragraph: string): ReadonlyMap<string, string> {
  const unfolded = paragraph.replaceAll(/\n[ \t]+/g, ' ');
  return new Map(
    unfolded.split('\n').flatMap((line) => {
      const [, name, value] = /^([A-Za-z-]+):\s*(.*)$/.exec(line) ?? [];
      return name === undefined || value === undefined ? [] : [[name.toLowerCase(), value.trim()] as const];
    }),
  );
}

/** Where apt finds what is signed of it: a suite that ends with `/` is a folder of its own (a flat repository). */
export function releaseUrl({ uri, suite }: Source): string {
  const base = uri.endsWith('/') ? uri : `${uri}/`;
  return suite.endsWith('/') ? `${base}${suite === '/' ? '' : suite}InRelease` : `${base}dists/${suite}/InRelease`;
}

/** RFC 9580, section 7: how a text that carries its signature begins. */
export const SIGNED = '-----BEGIN PGP SIGNED MESSAGE-----';
