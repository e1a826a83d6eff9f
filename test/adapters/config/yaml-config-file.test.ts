import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { parseConfig, YamlConfigFile } from '../../../src/adapters/config/yaml-config-file.js';
import { resolveConfig } from '../../../src/domain/config/plan.js';
import { type ConfigFile, describeProblem } from '../../../src/domain/config/problem.js';

const { signal } = new AbortController();
const folder = () => mkdtemp(join(tmpdir(), 'holdfast-config-'));

const resolveFile = (file: ConfigFile | undefined) => resolveConfig({ mode: 'production', file, environment: {}, flags: {} });

function problemsOf(file: ConfigFile | undefined): readonly string[] {
  const result = resolveFile(file);
  return result.valid ? [] : result.problems.map(describeProblem);
}

describe('parseConfig', () => {
  test.each<{ name: string; text: string; problems: readonly string[] }>([
    { name: 'empty', text: '', problems: [] },
    { name: 'only comments', text: '# logLevel: info\n', problems: [] },
    { name: 'off is text in YAML 1.2', text: 'metrics:\n  listen: off\n', problems: [] },
    {
      name: 'each problem at its line',
      text: '# c\nlogLevel: loud\nvip:\n  rnge: x\n  range: 8.8.8.0/24\nlabels:\n  zone: 1\nreadyTimeout:\n',
      problems: [
        'f.yaml:2: logLevel: expected one of trace, debug, info, warn, error, fatal, found "loud"',
        'f.yaml:7: labels.zone: expected text of at most 63 letters, digits, -, _ and . (in quotes), found 1',
        'f.yaml:8: readyTimeout: expected a duration of 1ms to 576h, such as 500ms, 30s, 5m or 2h, found nothing',
        'f.yaml:5: vip.range: expected a network like 10.192.0.0/16: /8 to /28, private (10/8, 172.16/12, 192.168/16) or of 100.64/10, without bits behind the prefix, found "8.8.8.0/24"',
        'f.yaml:4: vip.rnge: unknown key, did you mean range?',
      ],
    },
    { name: 'a doubled key', text: 'logLevel: info\nlogLevel: warn\n', problems: ['f.yaml:2: Map keys must be unique'] },
    {
      name: 'aliases',
      text: 'labels: &a\n  x: y\nvip: *a\n',
      problems: ['f.yaml:3: alias *a is not allowed: write the value out'],
    },
    {
      name: 'two documents',
      text: 'logLevel: info\n---\nlogLevel: warn\n',
      problems: ['f.yaml:2: Source contains multiple documents; please use YAML.parseAllDocuments()'],
    },
    {
      name: 'a tag that nobody knows',
      text: 'logLevel: !secret info\n',
      problems: ['f.yaml:1: Unresolved tag: !secret'],
    },
    { name: 'nested too deeply', text: '['.repeat(100_000), problems: ['f.yaml: is nested too deeply'] },
  ])('$name', ({ text, problems }) => {
    expect(problemsOf(parseConfig('f.yaml', text))).toEqual(problems);
  });

  test('syntax errors have lines', () => {
    const problems = problemsOf(parseConfig('f.yaml', 'logLevel: info\nvip: {range\n'));
    expect(problems.length).toBeGreaterThan(0);
    expect(problems.every((problem) => /^f\.yaml:[23]: /.test(problem))).toBe(true);
  });
});

describe('YamlConfigFile', () => {
  const read = (path: string, required = true) => new YamlConfigFile(path, { required }).read({ signal });

  test('reads what is there now', async () => {
    const path = join(await folder(), 'holdfast.yaml');
    await writeFile(path, 'logLevel: warn\n');
    const source = new YamlConfigFile(path, { required: false });
    expect(resolveFile(await source.read({ signal }))).toMatchObject({ valid: true, config: { logLevel: 'warn' } });
    await writeFile(path, 'logLevel: debug\n');
    expect(resolveFile(await source.read({ signal }))).toMatchObject({ valid: true, config: { logLevel: 'debug' } });
  });

  test('no file: nothing, or a problem when it was asked for', async () => {
    const path = join(await folder(), 'none.yaml');
    expect(await read(path, false)).toBeUndefined();
    expect(problemsOf(await read(path))).toEqual([`${path}: there is no such file`]);
  });

  test.each<{ name: string; bytes: Buffer; problem: string }>([
    {
      name: 'a byte order mark',
      bytes: Buffer.from('\ufefflogLevel: info'),
      problem: 'begins with a byte order mark; save it as UTF-8 without one',
    },
    { name: 'UTF-16', bytes: Buffer.from('\ufefflogLevel: info', 'utf16le'), problem: 'is UTF-16; save it as UTF-8' },
    { name: 'Latin 1', bytes: Buffer.from('logLevel: info\n# ä\n', 'latin1'), problem: 'is not UTF-8, first on line 2' },
    { name: 'more than 1 MiB', bytes: Buffer.alloc(1024 * 1024 + 1, '#'), problem: 'has more than 1048576 bytes' },
  ])('$name', async ({ bytes, problem }) => {
    const path = join(await folder(), 'holdfast.yaml');
    await writeFile(path, bytes);
    expect(problemsOf(await read(path))).toEqual([`${path}: ${problem}`]);
  });

  test('1 MiB is not too much', async () => {
    const path = join(await folder(), 'holdfast.yaml');
    await writeFile(path, Buffer.alloc(1024 * 1024, '#'));
    expect(problemsOf(await read(path))).toEqual([]);
  });

  test('a directory and a FIFO in its place', async () => {
    const inside = await folder();
    await mkdir(join(inside, 'folder'));
    await promisify(execFile)('mkfifo', [join(inside, 'fifo')]);
    expect(problemsOf(await read(join(inside, 'folder')))).toEqual([`${inside}/folder: is a directory`]);
    expect(problemsOf(await read(join(inside, 'fifo')))).toEqual([`${inside}/fifo: is not a regular file`]);
    expect(problemsOf(await read(join(inside, 'fifo/x')))).toEqual([`${inside}/fifo/x: cannot be read: ENOTDIR`]);
  });

  test('an aborted call rejects', async () => {
    await expect(new YamlConfigFile('/x', { required: false }).read({ signal: AbortSignal.abort() })).rejects.toThrow();
  });
});
