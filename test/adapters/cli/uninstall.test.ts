import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { UninstallOptions } from '../../../src/adapters/cli/local-verbs.js';
import { localVerbs } from '../../../src/main.js';
import { run } from '../../support/cli-rig.js';
import { tempFolder } from '../../support/temp-folder.js';

/** What a command line asks for; nothing is done. */
async function asked(...args: readonly string[]) {
  let given: UninstallOptions | undefined;
  const uninstall = async (_: unknown, options: UninstallOptions) => {
    given = options;
    return 0 as const;
  };
  const ran = await run(args, { local: { uninstall } });
  return { ...ran, given };
}

describe('the command lines', () => {
  const usual = { dryRun: false, yes: false, reboot: false, output: 'table' };

  test.each([
    [['cleanup'], { ...usual, verb: 'cleanup' }],
    [['uninstall', '--dry-run', '-o', 'json'], { ...usual, verb: 'uninstall', dryRun: true, output: 'json' }],
    [
      ['uninstall', '--yes', '--reboot', '--data-dir', '/d'],
      { ...usual, verb: 'uninstall', yes: true, reboot: true, dataDir: '/d' },
    ],
    [['reinstall', '--command-file', 'f'], { ...usual, verb: 'reinstall', commandFile: 'f' }],
  ])('%j', async (args, options) => {
    expect((await asked(...args)).given).toEqual(options);
  });

  test.each([[['reinstall']], [['cleanup', '--reboot']], [['uninstall', '--data-dir', '']], [['uninstall', '-o', 'xml']]])(
    '%j is none',
    async (args) => {
      const { code, given } = await asked(...args);
      expect([code, given]).toEqual([2, undefined]);
    },
  );
});

describe('on this machine', () => {
  const real = { local: { uninstall: localVerbs.uninstall } };

  async function dataDir(...files: readonly string[]): Promise<string> {
    const folder = join(await tempFolder(), 'data');
    await mkdir(folder);
    for (const file of files) await writeFile(join(folder, file), '');
    return folder;
  }

  test('--dry-run prints the plan, a line or an object a step, and changes nothing', async () => {
    const folder = await dataDir('node-identity.json');
    const plain = await run(['uninstall', '--dry-run', '--data-dir', folder], real);
    expect(plain.code).toBe(0);
    expect(plain.out).toMatch(/^CAPABILITY +WOULD REMOVE\nagent +stops holdfast-agent.service\n/);
    const { out } = await run(['cleanup', '--dry-run', '--data-dir', folder, '-o', 'json'], real);
    const { verb, dryRun, steps } = JSON.parse(out);
    expect({ verb, dryRun }).toEqual({ verb: 'cleanup', dryRun: true });
    expect(steps[0]).toEqual({
      capability: 'agent',
      do: 'run',
      argv: ['systemctl', 'stop', '--', 'holdfast-agent.service'],
      onlyIf: ['systemctl', 'cat', '--', 'holdfast-agent.service'],
      timeoutMs: 90_000,
      what: 'stops holdfast-agent.service',
    });
    expect(await readdir(folder)).toEqual(['node-identity.json']);
  });

  test('without --yes nothing is done where nobody can be asked, nor when the answer is no', async () => {
    const folder = await dataDir('node-identity.json');
    const alone = await run(['uninstall', '--data-dir', folder], real);
    expect([alone.code, alone.err]).toEqual([2, expect.stringContaining('needs --yes')]);
    const refused = await run(['uninstall', '--data-dir', folder], { ...real, interactive: true, stdin: 'n\n' });
    expect(refused.code).toBe(1);
    expect(await readdir(folder)).toEqual(['node-identity.json']);
  });

  test.each(['log.db', 'control.db'])('a data directory with %s is that of a control plane, and refused', async (file) => {
    const folder = await dataDir(file);
    for (const verb of [['uninstall'], ['cleanup'], ['uninstall', '--dry-run']]) {
      const { code, err } = await run([...verb, '--yes', '--data-dir', folder], real);
      expect([code, err]).toEqual([1, expect.stringContaining('uninstall.not_a_node')]);
    }
    expect(await readdir(folder)).toEqual([file]);
  });

  test.each(['', '  \n'])('the command of a reinstall is not %j', async (text) => {
    const folder = await dataDir();
    const file = join(folder, 'command');
    await writeFile(file, text);
    const { code, err } = await run(['reinstall', '--yes', '--data-dir', folder, '--command-file', file], real);
    expect([code, err]).toEqual([2, expect.stringContaining('is empty')]);
  });

  test('a command file that is not there is a usage error', async () => {
    const folder = await dataDir();
    const { code } = await run(['reinstall', '--yes', '--data-dir', folder, '--command-file', join(folder, 'none')], real);
    expect(code).toBe(2);
  });
});
