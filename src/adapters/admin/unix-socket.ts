import { closeSync, openSync } from 'node:fs';
import { basename, dirname } from 'node:path';

/** `sun_path` of unix(7) holds 108 bytes with the closing NUL. */
const MAX_SOCKET_PATH = 107;

/**
 * A name for the socket at `path` that the kernel takes whatever the path's length, usable until `release`: a longer one is
 * reached through a descriptor of its folder.
 * @throws Error of open(2) when the path is long and its folder cannot be opened
 */
export function socketName(path: string): { readonly name: string; release(): void } {
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH) return { name: path, release: () => {} };
  const folder = openSync(dirname(path), 'r');
  return { name: `/proc/self/fd/${folder}/${basename(path)}`, release: () => closeSync(folder) };
}
