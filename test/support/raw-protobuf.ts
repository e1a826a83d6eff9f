/**
 * Protobuf by hand, from https://protobuf.dev/programming-guides/encoding/: knows numbers of fields, and nothing of our generated code.
 */
export type RawValue = string | number | bigint | boolean | Uint8Array | readonly RawField[];
export type RawField = readonly [number, RawValue];

export function encode(...fields: readonly RawField[]): Buffer {
  return Buffer.concat(fields.map(([number, value]) => encodeField(number, value)));
}

function encodeField(number: number, value: RawValue): Buffer {
  if (typeof value === 'boolean') return encodeField(number, value ? 1 : 0);
  if (typeof value === 'number' || typeof value === 'bigint') {
    return Buffer.concat([varint(BigInt(number) << 3n), varint(BigInt.asUintN(64, BigInt(value)))]);
  }
  const bytes = typeof value === 'string' ? Buffer.from(value) : value instanceof Uint8Array ? value : encode(...value);
  return Buffer.concat([varint((BigInt(number) << 3n) | 2n), varint(BigInt(bytes.length)), bytes]);
}

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let left = value;
  do {
    bytes.push(Number(left & 0x7fn) | (left > 0x7fn ? 0x80 : 0));
    left >>= 7n;
  } while (left > 0n);
  return Buffer.from(bytes);
}

/** The fields of one message as they came: numbers as bigint, the others as bytes. */
export class RawMessage {
  readonly #fields = new Map<number, (bigint | Buffer)[]>();

  constructor(bytes: Buffer) {
    for (let at = 0; at < bytes.length; ) {
      const key = readVarint(bytes, at);
      const [number, wireType] = [Number(key.value >> 3n), Number(key.value & 7n)];
      const { value, next } = wireType === 0 ? readVarint(bytes, key.next) : readBytes(bytes, key.next, wireType);
      this.#fields.set(number, [...(this.#fields.get(number) ?? []), value]);
      at = next;
    }
  }

  /** In order. */
  get numbers(): readonly number[] {
    return [...this.#fields.keys()];
  }

  text(number: number): string {
    return this.bytes(number).toString('utf8');
  }

  texts(number: number): readonly string[] {
    return (this.#fields.get(number) ?? []).map(String);
  }

  bytes(number: number): Buffer {
    const value = this.#fields.get(number)?.at(-1) ?? Buffer.alloc(0);
    if (typeof value === 'bigint') throw new Error(`field ${number} is a number`);
    return value;
  }

  number(number: number): bigint {
    const value = this.#fields.get(number)?.at(-1) ?? 0n;
    if (typeof value !== 'bigint') throw new Error(`field ${number} is no number`);
    return value;
  }

  messages(number: number): readonly RawMessage[] {
    return (this.#fields.get(number) ?? []).map((value) => new RawMessage(Buffer.from(typeof value === 'bigint' ? [] : value)));
  }
}

function readVarint(bytes: Buffer, start: number): { readonly value: bigint; readonly next: number } {
  let value = 0n;
  for (let at = start, shift = 0n; ; at++, shift += 7n) {
    const byte = bytes[at];
    if (byte === undefined) throw new Error('cut off');
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return { value, next: at + 1 };
  }
}

function readBytes(bytes: Buffer, start: number, wireType: number): { readonly value: Buffer; readonly next: number } {
  if (wireType !== 2) throw new Error(`wire type ${wireType}`);
  const { value, next } = readVarint(bytes, start);
  const end = next + Number(value);
  if (end > bytes.length) throw new Error('cut off');
  return { value: bytes.subarray(next, end), next: end };
}
