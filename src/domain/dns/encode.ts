import { type Edns, type Message, type RecordData, type ResourceRecord, types } from './model.js';
import { type DomainName, formatName } from './name.js';

/** What a pointer can reach. */
const REACH = 0x4000;
/** The largest message over TCP (RFC 1035, 4.2.2). */
export const MAX_MESSAGE_BYTES = 65_535;

/** Names in their data may be compressed: those types that every reader knows (RFC 3597, 4). */
const compressed: ReadonlySet<number> = new Set([types.NS, types.CNAME, types.SOA, types.PTR, types.MX]);

class Writer {
  #bytes = new Uint8Array(512);
  #length = 0;
  /** Where each name, and each end of one, stands; with its case, which a pointer would change. */
  readonly #names = new Map<string, number>();

  get length(): number {
    return this.#length;
  }

  u8(value: number): void {
    if (this.#length === this.#bytes.length) {
      const larger = new Uint8Array(this.#bytes.length * 2);
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    this.#bytes[this.#length] = value;
    this.#length += 1;
  }

  u16(value: number): void {
    this.u8(value >> 8);
    this.u8(value & 0xff);
  }

  u32(value: number): void {
    this.u16(Math.floor(value / 65_536));
    this.u16(value % 65_536);
  }

  bytes(bytes: Uint8Array): void {
    for (const byte of bytes) this.u8(byte);
  }

  name(name: DomainName, compress: boolean): void {
    for (let index = 0; index < name.length; index += 1) {
      const key = formatName(name.slice(index));
      const known = compress ? this.#names.get(key) : undefined;
      if (known !== undefined) {
        this.u16(0xc000 + known);
        return;
      }
      if (this.#length < REACH && !this.#names.has(key)) this.#names.set(key, this.#length);
      const label = name[index] ?? '';
      this.u8(label.length);
      for (let at = 0; at < label.length; at += 1) this.u8(label.charCodeAt(at));
    }
    this.u8(0);
  }

  /** As if nothing had been written since it was `length` long. */
  cut(length: number): void {
    this.#length = length;
    for (const [key, at] of this.#names) if (at >= length) this.#names.delete(key);
  }

  put16(at: number, value: number): void {
    this.#bytes[at] = value >> 8;
    this.#bytes[at + 1] = value & 0xff;
  }

  done(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }
}

const HEADER_BYTES = 12;
const OPT_BYTES = 11;

/**
 * In at most `limit` bytes (not less than 512). What does not fit is cut at a record's beginning and TC is set, the OPT record stays;
 * records of the additional section are only left out, which is no truncation (RFC 2181, 9).
 */
export function encodeMessage(message: Message, limit = MAX_MESSAGE_BYTES): Uint8Array {
  const writer = new Writer();
  for (let index = 0; index < HEADER_BYTES; index += 1) writer.u8(0);
  for (const { name, type, class: questionClass } of message.questions) {
    writer.name(name, true);
    writer.u16(type);
    writer.u16(questionClass);
  }
  const room = limit - (message.edns === undefined ? 0 : OPT_BYTES);
  const answers = records(writer, message.answers, room);
  const isWhole = answers === message.answers.length;
  const authority = isWhole ? records(writer, message.authority, room) : 0;
  const isTruncated = !isWhole || authority < message.authority.length;
  const additional = isTruncated ? 0 : records(writer, message.additional, room);
  if (message.edns !== undefined) opt(writer, message.edns, message.rcode);
  writer.put16(0, message.id);
  writer.put16(2, flagsOf({ ...message, isTruncated: message.isTruncated || isTruncated }));
  const counts = [message.questions.length, answers, authority, additional + (message.edns === undefined ? 0 : 1)];
  for (const [index, count] of counts.entries()) writer.put16(4 + 2 * index, count);
  return writer.done();
}

/** @returns how many fitted */
function records(writer: Writer, all: readonly ResourceRecord[], room: number): number {
  for (const [index, record] of all.entries()) {
    const before = writer.length;
    writeRecord(writer, record);
    if (writer.length > room) {
      writer.cut(before);
      return index;
    }
  }
  return all.length;
}

function writeRecord(writer: Writer, { name, type, class: recordClass, ttl, data }: ResourceRecord): void {
  writer.name(name, true);
  writer.u16(type);
  writer.u16(recordClass);
  writer.u32(ttl);
  const at = writer.length;
  writer.u16(0);
  writeData(writer, data, compressed.has(type));
  writer.put16(at, writer.length - at - 2);
}

function writeData(writer: Writer, data: RecordData, compress: boolean): void {
  for (const part of data) {
    if (part instanceof Uint8Array) writer.bytes(part);
    else writer.name(part, compress);
  }
}

function opt(writer: Writer, { payloadBytes, version, isDnssecOk }: Edns, rcode: number): void {
  writer.u8(0);
  writer.u16(types.OPT);
  writer.u16(payloadBytes);
  writer.u8(rcode >> 4);
  writer.u8(version);
  writer.u16(isDnssecOk ? 0x8000 : 0);
  writer.u16(0);
}

function flagsOf(message: Message): number {
  return (
    (message.isResponse ? 0x8000 : 0) |
    (message.opcode << 11) |
    (message.isAuthoritative ? 0x0400 : 0) |
    (message.isTruncated ? 0x0200 : 0) |
    (message.recursionDesired ? 0x0100 : 0) |
    (message.recursionAvailable ? 0x0080 : 0) |
    (message.rcode & 0xf)
  );
}
