import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { readManifests } from '../../../src/adapters/manifest/manifest-files.js';
import { LineFinder } from '../../../src/adapters/manifest/problem-lines.js';
import { formatPath } from '../../../src/domain/resource/problem.js';
import { tempFolder } from '../../support/temp-folder.js';

const text = `# a comment
apiVersion: holdfast/v1
metadata:
  name: hello
  labels:
    example.com/tier: web
    "a\\"b": c
    80: x
spec:
  ports:
    - port: 80
      name: http
    - { port: 81 }
---
kind: Endpoints
metadata: { name: e,
  namespace: x }
---
- 1
`;

describe('the line of', () => {
  test.each<[readonly PropertyKey[], number]>([
    [[], 2],
    [['apiVersion'], 2],
    [['metadata', 'name'], 4],
    [['metadata', 'labels', 'example.com/tier'], 6],
    [['metadata', 'labels', 'a"b'], 7],
    [['metadata', 'labels', '80'], 8],
    [['spec', 'ports', 0, 'name'], 12],
    [['spec', 'ports', 1], 13],
    [['spec', 'ports', 1, 'port'], 13],
    [['spec', 'ports', 7, 'port'], 10],
    [['spec', 'endpoints'], 9],
    [['absent', 'deeper'], 2],
  ])('%j', (path, line) => {
    expect(new LineFinder(text).lineOf(1, formatPath(path))).toBe(line);
  });

  test('other documents, in any order', () => {
    const finder = new LineFinder(text);
    expect([2, 1, 3, 2].map((number) => finder.lineOf(number, 'metadata.namespace'))).toEqual([17, 3, 19, 17]);
    expect(finder.lineOf(9, '')).toBeUndefined();
  });

  test('a name that was too long to be shown is that of what holds it', () => {
    const path = formatPath(['metadata', 'labels', `${'x/'.repeat(100)}`]);
    expect(new LineFinder(text).lineOf(1, path)).toBe(5);
  });
});

test('a hundred problems at the end of a large file cost one pass', () => {
  const finder = new LineFinder(`${'a: { b: [1, 2, 3] }\n---\n'.repeat(10_000)}last: 1\n`);
  const started = performance.now();
  for (let problem = 0; problem < 100; problem++) expect(finder.lineOf(10_001, 'last')).toBe(20_001);
  expect(performance.now() - started).toBeLessThan(10_000);
});

test('problems are described with file and line, of standard input too', async () => {
  const file = join(await tempFolder(), 'hello.yaml');
  await writeFile(file, text);
  const options = { signal: new AbortController().signal };
  const { describe: told } = await readManifests([file, '-'], Readable.from([Buffer.from('a: 1\n')]), options);
  const problem = { document: 1, path: 'spec.ports[0].port', message: 'expected a port number' };
  expect(told({ ...problem, file })).toBe(`${file}:11: document 1, spec.ports[0].port: expected a port number`);
  expect(told({ ...problem, file: '-', path: '' })).toBe('standard input:1: document 1: expected a port number');
  expect(told({ ...problem, file: 'another.yaml' })).toBe('another.yaml: document 1, spec.ports[0].port: expected a port number');
});
