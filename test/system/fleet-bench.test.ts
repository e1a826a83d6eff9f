import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const results = join(root, 'build/bench/quick');

/** `npm run bench:fleet -- --quick` without the setup, which the tests have had. */
test('the bench of the fleet measures twenty agents and writes its page', { timeout: 120_000 }, async () => {
  await rm(results, { recursive: true, force: true });
  const args = ['--disable-warning=ExperimentalWarning', join(root, 'bench/fleet.ts'), '--quick'];
  const { stderr } = await promisify(execFile)(process.execPath, args);
  expect(stderr).toContain('bench: wrote');
  const lines = (await readFile(join(results, 'fleet.jsonl'), 'utf8')).trim().split('\n');
  const values = lines.map((line): unknown => JSON.parse(line));
  expect(values).toContainEqual(expect.objectContaining({ agents: 20, change: 20, lastMs: expect.any(Number) }));
  for (const store of ['embedded', 'etcd'])
    expect(values).toContainEqual(expect.objectContaining({ store, part: 'planned restart', name: 'all agents linked' }));
  const page = await readFile(join(results, 'fleet.md'), 'utf8');
  expect(page).toContain('## What this means for 10.0k nodes');
  expect(page).not.toContain('NaN');
  expect(await readFile(join(results, 'fleet.svg'), 'utf8')).toMatch(/^<svg /);
});
