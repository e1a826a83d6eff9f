import { type FSWatcher, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { ManifestSource, Manifests } from '../../ports/resource/manifest-source.js';
import { readManifests, sourceOf } from './manifest-files.js';

/** Editors write a file in several steps; what is read in between is half of it. */
const QUIET_MS = 100;

/** Manifests in files and folders on disk, noticed by inotify(7) when they change. */
export class WatchedManifests implements ManifestSource {
  readonly name: string;
  readonly #paths: readonly string[];
  readonly #clock: Clock;

  constructor(paths: readonly string[], clock: Clock) {
    this.name = sourceOf(paths);
    this.#paths = paths;
    this.#clock = clock;
  }

  read(): Promise<Manifests> {
    return readManifests(this.#paths, emptyStream());
  }

  async *changes({ signal }: CallOptions): AsyncIterable<void> {
    // What changed between the first apply and now was seen by nobody.
    let dirty = true;
    let wake: () => void = () => {};
    const mark = () => {
      dirty = true;
      wake();
    };
    const watchers = await this.#watch(mark);
    signal.addEventListener('abort', () => wake(), { once: true });
    try {
      while (!signal.aborted) {
        if (!dirty) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
          continue;
        }
        dirty = false;
        await this.#clock.sleep(QUIET_MS, { signal }).catch(() => {});
        if (!dirty && !signal.aborted) yield;
      }
    } finally {
      for (const watcher of watchers) watcher.close();
    }
  }

  /** The folder of a file, since editors replace files and a watch on the old one would see no more. */
  async #watch(mark: () => void): Promise<readonly FSWatcher[]> {
    const folders = new Set<string>();
    for (const path of this.#paths) folders.add((await stat(path)).isDirectory() ? path : dirname(path));
    return [...folders].map((folder) => watch(folder, mark).on('error', mark));
  }
}

async function* emptyStream(): AsyncIterable<Uint8Array> {}
