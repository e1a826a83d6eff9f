/** The labels of a domain name, without the root's: each 1 to 63 bytes, one character a byte (RFC 1035, 2.3.4 and 3.1). */
export type DomainName = readonly string[];

export const MAX_LABEL_BYTES = 63;
/** With the length bytes of all labels and the root's. */
export const MAX_NAME_BYTES = 255;

/** Names are the same when these are: case is of ASCII letters only, whatever else a byte is (RFC 4343). */
export function nameKey(name: DomainName): string {
  return lowered(formatName(name));
}

/** As names are compared. */
export function lowerCase(name: DomainName): DomainName {
  return name.map(lowered);
}

/** As people write it, with the final dot; what would be read as something else is escaped (RFC 1035, 5.1). */
export function formatName(name: DomainName): string {
  return name.length === 0 ? '.' : name.map((label) => `${escapeLabel(label)}.`).join('');
}

/** `hello.default.holdfast`, with or without the final dot. Undefined for what no name can be, and for escapes. */
export function parseName(text: string): DomainName | undefined {
  if (text === '.') return [];
  const labels = (text.endsWith('.') ? text.slice(0, -1) : text).split('.');
  const isOne = labels.every((label) => /^[\x21-\x5b\x5d-\x7e]+$/.test(label) && label.length <= MAX_LABEL_BYTES);
  return isOne && nameBytes(labels) <= MAX_NAME_BYTES ? labels : undefined;
}

/** In a message, uncompressed. */
export function nameBytes(name: DomainName): number {
  return name.reduce((sum, { length }) => sum + length + 1, 1);
}

/** `10.192.0.2` is `2.0.192.10.in-addr.arpa` (RFC 1035, 3.5). */
export function reverseOf(ipv4: string): DomainName {
  return [...ipv4.split('.').reverse(), 'in-addr', 'arpa'];
}

function lowered(text: string): string {
  return text.replace(/[A-Z]+/g, (upper) => upper.toLowerCase());
}

function escapeLabel(label: string): string {
  return label.replace(/[^\x21-\x7e]|[.\\"();@$]/g, (byte) =>
    byte > ' ' && byte < '\x7f' ? `\\${byte}` : `\\${String(byte.charCodeAt(0)).padStart(3, '0')}`,
  );
}
