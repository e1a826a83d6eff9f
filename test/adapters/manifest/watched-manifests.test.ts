import { mkdir, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { WatchedManifests } from '../../../src/adapters/manifest/watched-manifests.js';
import { manifestSourceContract } from '../../contract/manifest-source.contract.js';
import { FakeManifestSource } from '../../fakes/fake-manifest-source.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };
const yaml = (...values: readonly unknown[]) => values.map((value) => `---\n${JSON.stringify(value)}\n`).join('');

manifestSourceContract('fake', async () => {
  const source = new FakeManifestSource({ n: 0 });
  return { source, write: async (...values) => source.write(...values), spoil: async () => source.spoil('told to') };
});

manifestSourceContract('a watched file', async () => {
  const file = join(await tempFolder(), 'hello.yaml');
  await writeFile(file, yaml({ n: 0 }));
  return {
    source: new WatchedManifests([file], new SystemClock()),
    write: (...values) => writeFile(file, yaml(...values)),
    spoil: () => rm(file),
  };
});

manifestSourceContract('a watched folder', async () => {
  const folder = await tempFolder();
  const file = join(folder, 'hello.yaml');
  await writeFile(file, yaml({ n: 0 }));
  return {
    source: new WatchedManifests([folder], new SystemClock()),
    write: (...values) => writeFile(file, yaml(...values)),
    spoil: () => writeFile(file, 'a: [\n'),
  };
});

/** Follows `path` and counts the looks, the first of which comes of itself. */
async function following(...paths: readonly string[]) {
  const source = new WatchedManifests(paths, new SystemClock());
  const abort = new AbortController();
  const seen: unknown[] = [];
  const done = (async () => {
    for await (const _ of source.changes({ signal: abort.signal })) {
      seen.push(
        await source.read(options).then(
          ({ documents }) => documents.map(({ value }) => value),
          () => 'unreadable',
        ),
      );
    }
  })();
  onTestFinished(async () => {
    abort.abort();
    await done;
  });
  await expect.poll(() => seen.length).toBe(1);
  return seen;
}

describe('what counts as a change', () => {
  test('a file that an editor replaces, again and again', async () => {
    const folder = await tempFolder();
    const file = join(folder, 'hello.yaml');
    await writeFile(file, yaml({ n: 0 }));
    const seen = await following(file);
    for (const n of [1, 2, 3]) {
      await writeFile(join(folder, '.hello.yaml.swp'), yaml({ n }));
      await rename(join(folder, '.hello.yaml.swp'), file);
      await expect.poll(() => seen.at(-1)).toEqual([{ n }]);
    }
    expect(seen).toHaveLength(4);
  });

  test('several saves at once are one', async () => {
    const folder = await tempFolder();
    const seen = await following(folder);
    for (let n = 1; n <= 5; n++) {
      await writeFile(join(folder, 'a.yaml'), yaml({ n }));
      await writeFile(join(folder, 'b.yaml'), yaml({ n }));
      await sleep(20);
    }
    await expect.poll(() => seen.at(-1)).toEqual([{ n: 5 }, { n: 5 }]);
    await sleep(250);
    expect(seen).toHaveLength(2);
  });

  test('a file that is written without a pause is looked at all the same', async () => {
    const file = join(await tempFolder(), 'a.yaml');
    await writeFile(file, yaml({ n: 0 }));
    const seen = await following(file);
    const writing = setInterval(() => void writeFile(file, yaml({ n: 1 })), 30);
    onTestFinished(() => clearInterval(writing));
    await expect.poll(() => seen.length, { timeout: 10_000 }).toBeGreaterThan(1);
  });

  test('a file that is removed, and one that comes back', async () => {
    const file = join(await tempFolder(), 'a.yaml');
    await writeFile(file, yaml({ n: 0 }));
    const seen = await following(file);
    await unlink(file);
    await expect.poll(() => seen.at(-1)).toBe('unreadable');
    await writeFile(file, yaml({ n: 1 }));
    await expect.poll(() => seen.at(-1)).toEqual([{ n: 1 }]);
  });

  test('a folder that is removed and made again', async () => {
    const folder = join(await tempFolder(), 'manifests');
    await mkdir(folder);
    await writeFile(join(folder, 'a.yaml'), yaml({ n: 0 }));
    const seen = await following(folder);
    await rm(folder, { recursive: true });
    await expect.poll(() => seen.at(-1)).toBe('unreadable');
    await mkdir(folder);
    await writeFile(join(folder, 'a.yaml'), yaml({ n: 1 }));
    await expect.poll(() => seen.at(-1)).toEqual([{ n: 1 }]);
    await writeFile(join(folder, 'a.yaml'), yaml({ n: 2 }));
    await expect.poll(() => seen.at(-1)).toEqual([{ n: 2 }]);
  });

  test('what is not there yet, in a folder that is not there yet', async () => {
    const folder = join(await tempFolder(), 'later');
    const seen = await following(join(folder, 'a.yaml'));
    expect(seen).toEqual(['unreadable']);
    await mkdir(folder);
    await expect.poll(() => seen.length).toBe(2);
    await writeFile(join(folder, 'a.yaml'), yaml({ n: 1 }));
    await expect.poll(() => seen.at(-1)).toEqual([{ n: 1 }]);
  });

  test('the file behind a link', async () => {
    const folder = await tempFolder();
    await mkdir(join(folder, 'real'));
    await writeFile(join(folder, 'real/a.yaml'), yaml({ n: 0 }));
    await symlink(join(folder, 'real/a.yaml'), join(folder, 'link.yaml'));
    const seen = await following(join(folder, 'link.yaml'));
    await writeFile(join(folder, 'real/a.yaml'), yaml({ n: 1 }));
    await expect.poll(() => seen.at(-1)).toEqual([{ n: 1 }]);
  });

  test('a mounted folder whose content is exchanged by one link', async () => {
    const folder = await tempFolder();
    for (const n of [1, 2]) {
      await mkdir(join(folder, `..v${n}`));
      await writeFile(join(folder, `..v${n}/a.yaml`), yaml({ n }));
    }
    await symlink('..v1', join(folder, '..data'));
    await symlink('..data/a.yaml', join(folder, 'a.yaml'));
    const seen = await following(folder);
    expect(seen).toEqual([[{ n: 1 }]]);
    await symlink('..v2', join(folder, '..data_tmp'));
    await rename(join(folder, '..data_tmp'), join(folder, '..data'));
    await expect.poll(() => seen.at(-1)).toEqual([{ n: 2 }]);
  });

  test('not what else stands beside it', async () => {
    const folder = await tempFolder();
    await writeFile(join(folder, 'a.yaml'), yaml({ n: 0 }));
    const seen = await following(folder, join(folder, 'a.yaml'));
    await writeFile(join(folder, 'notes.txt'), 'x');
    await writeFile(join(folder, '.a.yaml.swp'), 'x');
    await sleep(300);
    expect(seen).toHaveLength(1);
  });
});

test('the name is that of the files, however they are named', async () => {
  const folder = await tempFolder();
  const name = (...paths: readonly string[]) => new WatchedManifests(paths, new SystemClock()).name;
  expect(name(`${folder}/./b`, `${folder}/a/../a`, `${folder}/a`)).toBe(`${folder}/a,${folder}/b`);
  expect(name(`${folder}/a`, `${folder}/b/`)).toBe(`${folder}/a,${folder}/b`);
});
