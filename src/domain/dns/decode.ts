import { classes, type Edns, type Message, type Question, type RecordData, type ResourceRecord, types } from './model.js';
import { type DomainName, MAX_NAME_BYTES } from './name.js';

/** Why bytes are no message. `id` and `opcode` are there when the header is, so that FORMERR can be answered. */
export interface Malformed {
  readonly problem: string;
  readonly header: { readonly id: number; readonly isResponse: boolean; readonly opcode: number } | undefined;
}

const HEADER_BYTES = 12;
/** A pointer goes back, at most to the header's end: so a name of 255 bytes follows this many at most. */
const MAX_POINTERS = 127;

class FormatError extends Error {}

/** Where in a message the reader stands. Everything it reads is within the message or a FormatError. */
class Reader {
  readonly #bytes: Uint8Array;
  at: number;

  constructor(bytes: Uint8Array, at: number) {
    // Node's Buffer is one that shares its memory with its slices.
    this.#bytes = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
    this.at = at;
  }

  get left(): number {
    return this.#bytes.length - this.at;
  }

  u8(): number {
    const byte = this.#bytes[this.at];
    if (byte === undefined) throw new FormatError('it ends too early');
    this.at += 1;
    return byte;
  }

  u16(): number {
    return this.u8() * 256 + this.u8();
  }

  u32(): number {
    return this.u16() * 65_536 + this.u16();
  }

  take(length: number): Uint8Array {
    if (length > this.left) throw new FormatError('it ends too early');
    this.at += length;
    return this.#bytes.slice(this.at - length, this.at);
  }

  /**
   * Pointers lead to what stands before the name (RFC 1035, 4.1.4: a prior occurrence), each further back than the one before: there is
   * no loop.
   */
  name(): DomainName {
    const labels: string[] = [];
    let bytes = 1;
    let back: number | undefined;
    let limit = this.at;
    for (let pointers = 0; ; ) {
      const length = this.u8();
      if (length === 0) break;
      if (length >= 0xc0) {
        const target = (length - 0xc0) * 256 + this.u8();
        back ??= this.at;
        pointers += 1;
        if (target >= limit || target < HEADER_BYTES || pointers > MAX_POINTERS) throw new FormatError('a pointer leads nowhere');
        limit = target;
        this.at = target;
      } else {
        // 64 to 191: label types that RFC 6891, 5 has given up.
        if (length > 63) throw new FormatError(`a label of type ${length >> 6}`);
        bytes += length + 1;
        if (bytes > MAX_NAME_BYTES) throw new FormatError('a name of more than 255 bytes');
        labels.push(latin1(this.take(length)));
      }
    }
    if (back !== undefined) this.at = back;
    return labels;
  }
}

/** Bytes that came from the network. What stands behind the message's end is an error as well: it would be sent on unread. */
export function decodeMessage(bytes: Uint8Array): Message | Malformed {
  if (bytes.length < HEADER_BYTES) return { problem: `${bytes.length} bytes are no header`, header: undefined };
  const reader = new Reader(bytes, 0);
  const id = reader.u16();
  const flags = reader.u16();
  const header = { id, isResponse: (flags & 0x8000) !== 0, opcode: (flags >> 11) & 0xf };
  try {
    return { ...header, ...flagsOf(flags), ...sectionsOf(reader, flags & 0xf) };
  } catch (error) {
    if (error instanceof FormatError) return { problem: error.message, header };
    throw error;
  }
}

function flagsOf(flags: number) {
  return {
    isAuthoritative: (flags & 0x0400) !== 0,
    isTruncated: (flags & 0x0200) !== 0,
    recursionDesired: (flags & 0x0100) !== 0,
    recursionAvailable: (flags & 0x0080) !== 0,
  };
}

function sectionsOf(reader: Reader, lowRcode: number) {
  const [questionCount, answerCount, authorityCount, additionalCount] = [reader.u16(), reader.u16(), reader.u16(), reader.u16()];
  const questions = repeat(questionCount, () => questionOf(reader));
  const answers = repeat(answerCount, () => recordOf(reader));
  const authority = repeat(authorityCount, () => recordOf(reader));
  const rest = repeat(additionalCount, () => recordOf(reader));
  if (reader.left > 0) throw new FormatError(`${reader.left} bytes behind its end`);
  const options = rest.filter(({ type }) => type === types.OPT);
  const [option] = options;
  if (options.length > 1) throw new FormatError('two OPT records');
  if (option !== undefined && option.name.length > 0) throw new FormatError('an OPT record that is not of the root');
  if ([...answers, ...authority].some(({ type }) => type === types.OPT)) throw new FormatError('an OPT record out of its place');
  const edns = option === undefined ? undefined : ednsOf(option);
  const rcode = lowRcode + (option === undefined ? 0 : Math.floor(option.ttl / 2 ** 24) * 16);
  return { rcode, questions, answers, authority, additional: rest.filter(({ type }) => type !== types.OPT), edns };
}

function questionOf(reader: Reader): Question {
  return { name: reader.name(), type: reader.u16(), class: reader.u16() };
}

function recordOf(reader: Reader): ResourceRecord {
  const name = reader.name();
  const [type, recordClass, ttl, length] = [reader.u16(), reader.u16(), reader.u32(), reader.u16()];
  const end = reader.at + length;
  if (length > reader.left) throw new FormatError('a record is longer than the message');
  const data = dataOf(reader, type, recordClass, end);
  if (reader.at !== end) throw new FormatError(`the data of a record of type ${type} is not as long as it says`);
  return { name, type, class: recordClass, ttl, data };
}

/** Names are read where RFC 1035 lets them be compressed, and in what came soon after (RFC 3597, 4). */
function dataOf(reader: Reader, type: number, recordClass: number, end: number): RecordData {
  if (recordClass !== classes.IN) return [reader.take(end - reader.at)];
  switch (type) {
    case types.NS:
    case types.CNAME:
    case types.PTR:
    case types.DNAME:
      return [reader.name()];
    case types.MX:
      return [reader.take(2), reader.name()];
    case types.SRV:
      return [reader.take(6), reader.name()];
    case types.SOA:
      return [reader.name(), reader.name(), reader.take(20)];
    case types.A:
      return [fixed(reader, 4, end)];
    case types.AAAA:
      return [fixed(reader, 16, end)];
    default:
      return [reader.take(end - reader.at)];
  }
}

function fixed(reader: Reader, length: number, end: number): Uint8Array {
  if (end - reader.at !== length) throw new FormatError(`an address of ${end - reader.at} bytes`);
  return reader.take(length);
}

function ednsOf({ class: payloadBytes, ttl }: ResourceRecord): Edns {
  return { payloadBytes: Math.max(512, payloadBytes), version: (ttl >> 16) & 0xff, isDnssecOk: (ttl & 0x8000) !== 0 };
}

function repeat<T>(count: number, read: () => T): readonly T[] {
  const found: T[] = [];
  // Not `Array.from`: a header may promise 65,535 that are not there.
  for (let index = 0; index < count; index += 1) found.push(read());
  return found;
}

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}
