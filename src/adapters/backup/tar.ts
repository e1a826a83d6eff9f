import type { FileHandle } from 'node:fs/promises';

/** POSIX ustar, as much of it as regular files with short names need: any tar reads it. */
const BLOCK = 512;
/** Eleven octal digits. */
const MAX_BYTES = 8 ** 11 - 1;

/** Where a file stands in an archive. */
export interface TarMember {
  readonly name: string;
  readonly offset: number;
  readonly bytes: number;
}

/** @throws RangeError for more than 8 GiB, or a name of more than 100 bytes */
export function tarHeader(name: string, bytes: number, mtimeMs: number): Uint8Array {
  if (bytes > MAX_BYTES || Buffer.byteLength(name) > 100)
    throw new RangeError(`${name} of ${bytes} bytes does not go into a tar`);
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, length: number) =>
    block.write(value.toString(8).padStart(length - 1, '0'), at, length - 1, 'latin1');
  block.write(name, 0);
  octal(0o600, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(bytes, 124, 12);
  octal(Math.floor(mtimeMs / 1_000), 136, 12);
  block.write('0', 156);
  block.write('ustar\0' + '00', 257, 'latin1');
  block.write(`${checksumOf(block).toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

/** What follows a file of that size. */
export function tarPadding(bytes: number): Uint8Array {
  return Buffer.alloc((BLOCK - (bytes % BLOCK)) % BLOCK);
}

export const TAR_END: Uint8Array = Buffer.alloc(2 * BLOCK);

/** Everything that is in the archive. Undefined when it is none, or does not come to its end. */
export async function readTar(file: FileHandle): Promise<readonly TarMember[] | undefined> {
  const { size } = await file.stat();
  const members: TarMember[] = [];
  const block = Buffer.alloc(BLOCK);
  for (let at = 0; at + BLOCK <= size; ) {
    await file.read(block, 0, BLOCK, at);
    if (block.every((byte) => byte === 0)) return members;
    const member = memberOf(block, at + BLOCK);
    if (member === undefined) return undefined;
    members.push(member);
    at = member.offset + Math.ceil(member.bytes / BLOCK) * BLOCK;
  }
  return undefined;
}

function memberOf(block: Buffer, offset: number): TarMember | undefined {
  const text = (at: number, length: number) =>
    block
      .toString('latin1', at, at + length)
      .split('\0', 1)[0]
      ?.trim() ?? '';
  const octal = (at: number, length: number) => (/^[0-7]+$/.test(text(at, length)) ? Number.parseInt(text(at, length), 8) : -1);
  const bytes = octal(124, 12);
  if (octal(148, 8) !== checksumOf(block) || bytes < 0 || text(257, 5) !== 'ustar') return undefined;
  return { name: text(0, 100), offset, bytes };
}

/** Of a header whose own checksum counts as spaces. */
function checksumOf(block: Buffer): number {
  return block.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 0x20 : byte), 0);
}
