import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { MAX_FILE_BYTES, readManifests, sourceOf } from '../../../src/adapters/manifest/manifest-files.js';
import { MAX_DOCUMENTS } from '../../../src/domain/kernel/limits.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };
const nothing = () => Readable.from([]);
const read = (...paths: readonly string[]) => readManifests(paths, nothing(), options);
const piped = (text: string | Uint8Array) => readManifests(['-'], Readable.from([Buffer.from(text)]), options);
const valuesOf = async (text: string) => (await piped(text)).documents.map(({ number, value }) => [number, value]);

async function file(content: string | Uint8Array, name = 'a.yaml'): Promise<string> {
  const path = join(await tempFolder(), name);
  await writeFile(path, content);
  return path;
}

const invalid = (message: string | RegExp) => ({
  code: 'resource.invalid',
  message: typeof message === 'string' ? expect.stringContaining(message) : expect.stringMatching(message),
});

describe('documents', () => {
  test.each<[string, string, readonly unknown[]]>([
    [
      'of YAML',
      'a: 1\n---\nb: [x, y]\n',
      [
        [1, { a: 1 }],
        [2, { b: ['x', 'y'] }],
      ],
    ],
    ['of JSON', '{"a": 1}', [[1, { a: 1 }]]],
    ['none', '', []],
    ['comments only', '# nothing\n', []],
    ['empty ones keep their number', '---\n---\na: 1\n---\n', [[2, { a: 1 }]]],
    ['a byte order mark is no text', '\uFEFFa: 1\n', [[1, { a: 1 }]]],
    ['lines of Windows', 'a: 1\r\nb: 2\r\n', [[1, { a: 1, b: 2 }]]],
    ['dates stay text', 'a: 2026-01-31\n', [[1, { a: '2026-01-31' }]]],
    ['the words of YAML 1.1 stay text', 'a: [yes, no, on, off]\n', [[1, { a: ['yes', 'no', 'on', 'off'] }]]],
    ['octal and hexadecimal of YAML 1.2', 'a: [0o17, 0x10, 010]\n', [[1, { a: [15, 16, 10] }]]],
    ['huge numbers are numbers', 'a: 123456789012345678901234567890\n', [[1, { a: Number('123456789012345678901234567890') }]]],
    ['keys that are numbers', '80: a\n', [[1, { 80: 'a' }]]],
    ['a merge key is a key', '<<: { a: 1 }\n', [[1, { '<<': { a: 1 } }]]],
    [
      'no mapping at all',
      '- a\n---\n7\n---\ntext\n',
      [
        [1, ['a']],
        [2, 7],
        [3, 'text'],
      ],
    ],
  ])('%s', async (_, text, expected) => {
    expect(await valuesOf(text)).toEqual(expected);
  });

  test('a key that JavaScript uses is a key like others', async () => {
    const [document] = (await piped('__proto__: { polluted: true }\nconstructor: x\n')).documents;
    expect(JSON.stringify(document?.value)).toBe('{"__proto__":{"polluted":true},"constructor":"x"}');
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
  });
});

describe('refused, by line', () => {
  test.each<[string, string, string]>([
    ['what is no YAML', 'a: 1\nb: [1\nc: 2\n', 'standard input:'],
    ['a key twice', 'a: 1\nb: 2\na: 3\n', 'standard input:3: Map keys must be unique'],
    ['an unknown tag', 'a: 1\nb: !secret x\n', 'standard input:2: Unresolved tag: !secret'],
    ['binary data in YAML', 'a: !!binary aGk=\n', 'standard input:1: tag tag:yaml.org,2002:binary is not allowed'],
    ['a set', 'a: 1\nb: !!set { x }\n', 'standard input:2: tag tag:yaml.org,2002:set is not allowed'],
    ['an alias', 'a: &x { b: 1 }\nc: *x\n', 'standard input:2: alias *x is not allowed: write the value out'],
    ['not a number', 'a: 1\nb: .nan\n', 'standard input:2: expected a number or a text in quotes, found .nan'],
    ['infinity', 'a: -.inf\n', 'standard input:1: expected a number or a text in quotes, found -.inf'],
    ['a number that is infinity', 'a: 1e999\n', 'standard input:1: expected a number or a text in quotes, found 1e999'],
    ['a key that is a list', 'x: 1\n? [a, b]\n: 1\n', 'standard input:2: expected a plain key, found a list or a mapping'],
    ['in the second document', 'a: 1\n---\nb: 1\nb: 2\n', 'standard input:4: Map keys must be unique'],
    ['a tab that indents', 'a:\n\tb: 1\n', 'standard input:2: Tabs are not allowed'],
  ])('%s', async (_, text, message) => {
    await expect(piped(text)).rejects.toMatchObject(invalid(message));
  });

  test('a YAML bomb costs nothing', async () => {
    const levels = Array.from({ length: 9 }, (_, n) => `l${n + 1}: &l${n + 1} [${Array(9).fill(`*l${n}`).join(', ')}]`);
    const started = performance.now();
    await expect(piped(`l0: &l0 [a, b]\n${levels.join('\n')}\n`)).rejects.toMatchObject(invalid('alias *l0 is not allowed'));
    expect(performance.now() - started).toBeLessThan(2_000);
  });

  test.each<[string, string]>([
    ['brackets', '['.repeat(100_000)],
    ['closed brackets', `${'['.repeat(20_000)}${']'.repeat(20_000)}`],
    ['mappings', `${'{a: '.repeat(20_000)}1${'}'.repeat(20_000)}`],
    ['block lists', `${'- '.repeat(20_000)}x`],
  ])('%s by the thousand', async (_, text) => {
    await expect(piped(text)).rejects.toMatchObject(invalid('nested too deeply'));
  });
});

describe('limits', () => {
  test('16 MiB are read, a byte more is not', async () => {
    const text = (size: number) => `# ${'x'.repeat(size - 8)}\na: 1\n`.slice(0, size);
    const whole = await file(text(MAX_FILE_BYTES));
    expect((await read(whole)).documents).toHaveLength(1);
    await expect(read(await file(`${text(MAX_FILE_BYTES)} `))).rejects.toMatchObject(invalid('at most 16 MiB; split the file'));
  });

  test('of a file of 50 MB nothing is read', async () => {
    const path = await file('');
    const handle = await open(path, 'r+');
    await handle.truncate(50_000_000);
    await handle.close();
    await expect(read(path)).rejects.toMatchObject(invalid('at most 16 MiB'));
  });

  test('standard input that never ends is left', async () => {
    async function* endless() {
      for (;;) yield Buffer.alloc(1024 * 1024, '#');
    }
    await expect(readManifests(['-'], endless(), options)).rejects.toMatchObject(
      invalid('standard input: expected at most 16 MiB'),
    );
  });

  test('64 MiB in all files', async () => {
    const folder = await tempFolder();
    for (let n = 0; n < 5; n++) await writeFile(join(folder, `${n}.yaml`), Buffer.alloc(14 * 1024 * 1024, '#'));
    await expect(read(folder)).rejects.toMatchObject(invalid('expected at most 64 MiB in all files'));
  });

  test('20,000 documents, empty ones as well', async () => {
    expect((await piped('a: 1\n---\n'.repeat(MAX_DOCUMENTS - 1))).documents).toHaveLength(MAX_DOCUMENTS - 1);
    await expect(piped('a: 1\n---\n'.repeat(MAX_DOCUMENTS + 1))).rejects.toMatchObject(invalid('at most 20000 documents'));
    await expect(piped('---\n'.repeat(MAX_DOCUMENTS + 1))).rejects.toMatchObject(invalid('at most 20000 documents'));
  });
});

describe('what is no text', () => {
  test.each<[string, Uint8Array]>([
    ['binary', Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0, 0, 1])],
    ['invalid UTF-8', Buffer.from([0x61, 0x3a, 0x20, 0xc3, 0x28])],
    ['Latin-1', Buffer.from('a: h\u00e9llo', 'latin1')],
    ['UTF-16', Buffer.from('\uFEFFa: 1', 'utf16le')],
    ['with a NUL', Buffer.from('a: \0')],
  ])('%s', async (_, bytes) => {
    await expect(read(await file(bytes))).rejects.toMatchObject(
      invalid('expected YAML or JSON text in UTF-8, found binary data'),
    );
  });
});

describe('files and folders', () => {
  test('the manifests directly in a folder, in the order of their names; a file that is named twice is read once', async () => {
    const folder = await tempFolder();
    for (const name of ['b.yaml', 'a.yml', 'c.json', '.hidden.yaml', 'notes.txt'])
      await writeFile(join(folder, name), `"${name}"`);
    await mkdir(join(folder, 'below'));
    await writeFile(join(folder, 'below/d.yaml'), 'd');
    const { documents } = await read(join(folder, 'c.json'), folder, `${folder}/./c.json`);
    expect(documents.map(({ value }) => value)).toEqual(['c.json', 'a.yml', 'b.yaml']);
  });

  test('what a file is called is no matter when it is named', async () => {
    expect((await read(await file('a: 1', 'notes.txt'))).documents).toHaveLength(1);
  });

  test('an empty folder holds nothing', async () => {
    expect((await read(await tempFolder())).documents).toEqual([]);
  });

  test('missing ones are named, links that lead nowhere as well', async () => {
    const folder = await tempFolder();
    await expect(read(join(folder, 'absent'))).rejects.toMatchObject(invalid(/absent: there is no such file or folder$/));
    await symlink('nowhere', join(folder, 'link.yaml'));
    await expect(read(folder)).rejects.toMatchObject(invalid(/link\.yaml: there is no such file or folder$/));
  });

  test('unreadable ones are named', async () => {
    // Root reads everything but a link to itself.
    const path = join(await tempFolder(), 'loop.yaml');
    await symlink('loop.yaml', path);
    await expect(read(path)).rejects.toMatchObject(invalid(/loop\.yaml: cannot be read: .*ELOOP/));
  });

  test.each(['/dev/zero', '/dev/null', '/proc/self/mem'])('%s is no manifest', async (path) => {
    await expect(read(path)).rejects.toMatchObject(invalid(path));
  });

  test('a pipe that nobody writes holds up nothing', async () => {
    const path = join(await tempFolder(), 'pipe.yaml');
    execFileSync('mkfifo', [path]);
    await expect(read(path)).rejects.toMatchObject(invalid('found a pipe or a device; - reads standard input'));
  });

  test('what a shell hands over is read', async () => {
    const program = `const [, file, module] = process.argv;
      const { readManifests } = await import(module);
      const { documents } = await readManifests([file], process.stdin, { signal: new AbortController().signal });
      console.log(JSON.stringify(documents.map(({ value }) => value)));`;
    const resolver = new URL('../../support/resolve-typescript.mjs', import.meta.url).href;
    const module = new URL('../../../src/adapters/manifest/manifest-files.ts', import.meta.url).href;
    const flags = '--input-type=module-typescript --disable-warning=ExperimentalWarning';
    const line = `"$1" --import "$2" ${flags} -e "$3" <(sleep 0.2; echo 'a: 1') "$4"`;
    const child = spawn('bash', ['-c', line, 'bash', process.execPath, resolver, program, module], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [output] = await once(child.stdout, 'data');
    expect(String(output)).toBe('[{"a":1}]\n');
  });
});

test('standard input at which nobody types is given up on abort', async () => {
  const abort = new AbortController();
  const stdin = new Readable({ read: () => {} });
  const reading = readManifests(['-'], stdin, { signal: abort.signal });
  abort.abort(new Error('interrupted'));
  await expect(reading).rejects.toThrow('interrupted');
});

test('a source is named by its files', () => {
  expect(sourceOf(['-'])).toBe('-');
  expect(sourceOf(['b', 'a', './b'])).toBe(`${process.cwd()}/a,${process.cwd()}/b`);
});
