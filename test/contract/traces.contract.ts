import { describe, expect, test } from 'vitest';
import type { AbsolutePath } from '../../src/domain/kernel/paths.js';
import type { Traces } from '../../src/ports/uninstall/traces.js';

const options = { signal: new AbortController().signal };

export interface TracesRig {
  readonly traces: Traces;
  /** Prefix of all paths. */
  readonly folder: string;
}

/** Every Traces must pass. `make` is given files, and folders that something is mounted on. */
export function tracesContract(
  name: string,
  make: (files: readonly string[], mounts: readonly string[]) => Promise<TracesRig>,
): void {
  describe(`Traces: ${name}`, () => {
    async function rig(files: readonly string[], mounts: readonly string[] = []) {
      const { traces, folder } = await make(files, mounts);
      const at = (path: string) => `${folder}${path}` as AbsolutePath;
      return { traces, at, entries: async (path: string) => [...(await traces.entries(at(path), options))].sort() };
    }

    test('a folder goes with all that is in it, and once more is no failure', async () => {
      const { traces, at, entries } = await rig(['/d/a/1', '/d/a/b/2', '/d/c']);
      expect(await entries('/d')).toEqual(['a', 'c']);
      await traces.remove(at('/d/a'), options);
      await traces.remove(at('/d/a'), options);
      expect(await entries('/d')).toEqual(['c']);
      expect(await entries('/nowhere')).toEqual([]);
    });

    test('a folder that holds something stays, an empty one goes, absent is success', async () => {
      const { traces, at, entries } = await rig(['/d/e/1', '/d/c']);
      await traces.removeEmptyFolder(at('/d/e'), options);
      expect(await entries('/d')).toEqual(['c', 'e']);
      await traces.remove(at('/d/e/1'), options);
      await traces.removeEmptyFolder(at('/d/e'), options);
      await traces.removeEmptyFolder(at('/d/e'), options);
      expect(await entries('/d')).toEqual(['c']);
    });

    test('mounts below, the deepest first; a name that only begins alike is none', async () => {
      const { traces, at } = await rig(['/d/v/x/1', '/d/v2/1'], ['/d/v', '/d/v/x', '/d/v2']);
      expect(await traces.mountsBelow(at('/d/v'), options)).toEqual([at('/d/v/x')]);
      expect(await traces.mountsBelow(at('/d'), options)).toEqual(expect.arrayContaining([at('/d/v'), at('/d/v2')]));
      expect((await traces.mountsBelow(at('/d'), options))[0]).toBe(at('/d/v/x'));
    });

    test('nothing is removed that something is mounted in or on', async () => {
      const { traces, at, entries } = await rig(['/d/v/x/1', '/d/c'], ['/d/v/x']);
      for (const path of ['/d', '/d/v', '/d/v/x']) {
        await expect(traces.remove(at(path), options)).rejects.toMatchObject({ code: 'uninstall.not_removed' });
      }
      expect(await entries('/d/v/x')).toEqual(['1']);
    });

    test('aborted calls reject and change nothing', async () => {
      const { traces, at, entries } = await rig(['/d/c']);
      await expect(traces.remove(at('/d'), { signal: AbortSignal.abort() })).rejects.toThrow();
      expect(await entries('/d')).toEqual(['c']);
    });
  });
}
