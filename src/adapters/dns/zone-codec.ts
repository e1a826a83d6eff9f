import type { DomainName } from '../../domain/dns/name.js';
import type { ReadyApex, ReadyGroup, ReadyName, ZoneDelta } from '../../domain/dns/ready.js';

const magic = 0x4e44_4648; // "HFDN"
const version = 1;
const asTheyWere = 0xffff_ffff;

/**
 * A zone delta as native/core/dns_codec.h describes it. The native side checks everything again.
 * @throws RangeError when a group has more than 65,535 names, or an answer more bytes.
 */
export function encodeZoneDelta({ serial, apexes, remove, upsert }: ZoneDelta): Uint8Array {
  const out = new Writer();
  out.u32(magic);
  out.u16(version);
  out.u16(0);
  out.u32(serial);
  out.u32(apexes?.length ?? asTheyWere);
  out.u32(remove.length);
  out.u32(upsert.length);
  for (const apex of apexes ?? []) writeApex(out, apex);
  for (const id of remove) out.id(id);
  for (const group of upsert) writeGroup(out, group);
  return out.done();
}

function writeApex(out: Writer, { name, server, mailbox, refresh, retry, expire, ttl, isReverse }: ReadyApex): void {
  for (const each of [name, server, mailbox]) out.name(each);
  for (const number of [refresh, retry, expire, ttl]) out.u32(number);
  out.u8(isReverse ? 1 : 0);
}

function writeGroup(out: Writer, { id, names }: ReadyGroup): void {
  out.id(id);
  out.u16(names.length);
  for (const name of names) writeName(out, name);
}

function writeName(out: Writer, { name, answers }: ReadyName): void {
  out.name(name);
  out.u16(answers.length);
  for (const answer of answers) {
    for (const number of [answer.type, answer.answers, answer.authority, answer.additional, answer.body.length]) out.u16(number);
    out.bytes(answer.body);
  }
}

class Writer {
  #bytes = new Uint8Array(4_096);
  #view = new DataView(this.#bytes.buffer);
  #at = 0;

  u8(value: number): void {
    this.#room(1);
    this.#view.setUint8(this.#at, value);
    this.#at += 1;
  }

  u16(value: number): void {
    if (value > 0xffff) throw new RangeError(`${value} is more than 65535`);
    this.#room(2);
    this.#view.setUint16(this.#at, value, true);
    this.#at += 2;
  }

  u32(value: number): void {
    this.#room(4);
    this.#view.setUint32(this.#at, value, true);
    this.#at += 4;
  }

  bytes(bytes: Uint8Array): void {
    this.#room(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  id(id: string): void {
    const bytes = new TextEncoder().encode(id);
    this.u16(bytes.length);
    this.bytes(bytes);
  }

  name(name: DomainName): void {
    for (const label of name) {
      this.u8(label.length);
      for (let at = 0; at < label.length; at += 1) this.u8(label.charCodeAt(at));
    }
    this.u8(0);
  }

  done(): Uint8Array {
    return this.#bytes.slice(0, this.#at);
  }

  #room(count: number): void {
    if (this.#at + count <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(this.#bytes.length * 2, this.#at + count));
    larger.set(this.#bytes);
    this.#bytes = larger;
    this.#view = new DataView(larger.buffer);
  }
}
