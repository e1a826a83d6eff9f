import { type FSWatcher, watch } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { ManifestSource, Manifests } from '../../ports/resource/manifest-source.js';
import { isManifestName, readManifests, sourceOf } from './manifest-files.js';

/** Editors write a file in several steps; what is read in between is half of it. */
const QUIET_MS = 100;
/** A file that is written all the time is looked at as often as this. */
const LONGEST_MS = 2_000;

/** Manifests in files and folders on disk, noticed by inotify(7) when they change, are replaced, go or come. */
export class WatchedManifests implements ManifestSource {
  readonly name: string;
  readonly #paths: readonly string[];
  readonly #clock: Clock;

  constructor(paths: readonly string[], clock: Clock) {
    this.name = sourceOf(paths);
    this.#paths = paths;
    this.#clock = clock;
  }

  async read(options: CallOptions): Promise<Manifests> {
    options.signal.throwIfAborted();
    return readManifests(this.#paths, emptyStream(), options);
  }

  async *changes({ signal }: CallOptions): AsyncIterable<void> {
    // What changed between the first apply and now was seen by nobody.
    const state = { dirty: true, wake: () => {} };
    const mark = () => {
      state.dirty = true;
      state.wake();
    };
    const onAbort = () => state.wake();
    signal.addEventListener('abort', onAbort);
    let watchers = await watchAll(this.#paths, mark);
    try {
      while (!signal.aborted) {
        if (!state.dirty) {
          await new Promise<void>((resolve) => {
            state.wake = resolve;
          });
          continue;
        }
        await this.#quiet(state, signal);
        if (signal.aborted) return;
        // A watch is on an inode: what was removed and made again, folders as well, is another one.
        const renewed = await watchAll(this.#paths, mark).catch(() => undefined);
        if (renewed !== undefined) {
          close(watchers);
          watchers = renewed;
        }
        yield;
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
      close(watchers);
    }
  }

  async #quiet(state: { dirty: boolean }, signal: AbortSignal): Promise<void> {
    const end = this.#clock.monotonic() + LONGEST_MS;
    do {
      state.dirty = false;
      await this.#clock.sleep(QUIET_MS, { signal }).catch(() => {});
    } while (state.dirty && !signal.aborted && this.#clock.monotonic() < end);
    state.dirty = false;
  }
}

/** What matters in a folder: its manifests, or some names. */
interface Interest {
  manifests: boolean;
  readonly names: Set<string>;
}

type Watched = Map<string, Interest>;

async function watchAll(paths: readonly string[], mark: () => void): Promise<readonly FSWatcher[]> {
  const watched: Watched = new Map();
  for (const path of paths) await addPath(resolve(path), watched);
  const watchers: FSWatcher[] = [];
  try {
    for (const [folder, interest] of watched) {
      const watcher = watch(folder, (_, name) => {
        if (name === null || matters(name, interest)) mark();
      });
      watchers.push(watcher.on('error', mark));
    }
    return watchers;
  } catch (error) {
    close(watchers);
    throw error;
  }
}

function matters(name: string, { manifests, names }: Interest): boolean {
  // Kubernetes replaces mounted files by moving this link.
  return names.has(name) || (manifests && (isManifestName(name) || name === '..data'));
}

/** Both where the path stands and where its links lead; of what is not there, the nearest folder above it. */
async function addPath(path: string, watched: Watched): Promise<void> {
  const entry = await stat(path).catch(() => undefined);
  if (entry?.isDirectory() === true) interestIn(path, watched).manifests = true;
  if (path === '/') return;
  const folder = dirname(path);
  if (entry === undefined && (await stat(folder).catch(() => undefined)) === undefined) return addPath(folder, watched);
  interestIn(folder, watched).names.add(basename(path));
  const real = entry === undefined ? path : await realpath(path).catch(() => path);
  if (real !== path) interestIn(dirname(real), watched).names.add(basename(real));
}

function interestIn(folder: string, watched: Watched): Interest {
  const interest = watched.get(folder) ?? { manifests: false, names: new Set() };
  watched.set(folder, interest);
  return interest;
}

function close(watchers: readonly FSWatcher[]): void {
  for (const watcher of watchers) watcher.close();
}

async function* emptyStream(): AsyncIterable<Uint8Array> {}
