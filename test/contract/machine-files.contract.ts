import { describe, expect, test } from 'vitest';
import type { AbsolutePath } from '../../src/domain/kernel/paths.js';
import type { MachineFiles } from '../../src/ports/files/machine-files.js';

const options = { signal: new AbortController().signal };
const aborted = { signal: AbortSignal.abort() };

export interface MachineFilesKit {
  readonly files: MachineFiles;
  /** Of a folder that is this test's alone. */
  readonly at: (path: string) => AbsolutePath;
}

/** Every MachineFiles must pass. */
export function machineFilesContract(name: string, make: () => Promise<MachineFilesKit>): void {
  describe(`MachineFiles: ${name}`, () => {
    const file = (path: AbsolutePath, text: string) => ({ path, text, mode: 0o600 });

    test('what is not there is nothing, and removing it is success', async () => {
      const { files, at } = await make();
      expect(await files.read(at('a/b'), options)).toBeUndefined();
      await files.remove(at('a/b'), options);
      await files.removeEmptyFolder(at('a'), options);
    });

    test('files are put in place with the folders above them, whatever stood there; again changes nothing', async () => {
      const { files, at } = await make();
      await files.replace([file(at('a/b/one'), '1'), file(at('two'), '2')], options);
      await files.replace([file(at('a/b/one'), 'ä\n'), file(at('two'), '2')], options);
      expect([await files.read(at('a/b/one'), options), await files.read(at('two'), options)]).toEqual(['ä\n', '2']);
    });

    test('a folder that holds something stays, an empty one goes', async () => {
      const { files, at } = await make();
      await files.replace([file(at('a/one'), '1')], options);
      await files.removeEmptyFolder(at('a'), options);
      expect(await files.read(at('a/one'), options)).toBe('1');
      await files.remove(at('a/one'), options);
      await files.removeEmptyFolder(at('a'), options);
      expect(await files.read(at('a/one'), options)).toBeUndefined();
      await files.replace([file(at('a/one'), '2')], options);
      expect(await files.read(at('a/one'), options)).toBe('2');
    });

    test('aborted calls reject and change nothing', async () => {
      const { files, at } = await make();
      await files.replace([file(at('one'), '1')], options);
      await expect(files.read(at('one'), aborted)).rejects.toThrow();
      await expect(files.replace([file(at('one'), '2')], aborted)).rejects.toThrow();
      await expect(files.remove(at('one'), aborted)).rejects.toThrow();
      await expect(files.removeEmptyFolder(at('a'), aborted)).rejects.toThrow();
      expect(await files.read(at('one'), options)).toBe('1');
    });
  });
}
