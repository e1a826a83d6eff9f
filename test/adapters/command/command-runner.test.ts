import { readdir, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { ExecaCommandRunner } from '../../../src/adapters/command/execa-command-runner.js';
import { commandRunnerContract } from '../../contract/command-runner.contract.js';
import { FakeCommandRunner } from '../../fakes/fake-command-runner.js';

const options = { signal: new AbortController().signal };
const runner = new ExecaCommandRunner();

commandRunnerContract('execa', async () => ({
  runner,
  echo: async (exitCode) => ['sh', '-c', `printf %s "$*"; cat >&2; exit ${exitCode}`, 'sh'],
  hang: async () => ['sleep', '1000'],
}));

commandRunnerContract('fake', async () => {
  const fake = new FakeCommandRunner();
  return {
    runner: fake,
    echo: async (exitCode) => {
      fake.program(['echo'], ({ argv, stdin }) => ({ exitCode, stdout: argv.slice(1).join(' '), stderr: stdin ?? '' }));
      return ['echo'];
    },
    hang: async () => {
      fake.program(['hang'], 'hang');
      return ['hang'];
    },
  };
});

function sh(
  script: string,
  more: { readonly timeoutMs?: number; readonly env?: Record<string, string>; readonly stdin?: string } = {},
) {
  return runner.run({ argv: ['sh', '-c', script], timeoutMs: 20_000, ...more }, options);
}

/** Pids whose group is that, zombies too. */
async function groupMembers(group: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')));
  // After the name in brackets: state, parent, group.
  return stats.filter((stat) => /\) \S \d+ (\d+)/.exec(stat)?.[1] === group).map((stat) => stat.split(' ')[0] ?? '');
}

async function expectGroupGone(group: string): Promise<void> {
  // Orphans are reaped by whoever is init here, in its own time.
  await expect.poll(() => groupMembers(group), { timeout: 5_000 }).toEqual([]);
}

test('the environment is PATH, HOME, LANG and what the command adds', async () => {
  process.env.HOLDFAST_TEST_LEAK = 'leaked';
  try {
    const { stdout } = await runner.run({ argv: ['env'], env: { KUBECONFIG: '/k', HOME: '/mine' }, timeoutMs: 10_000 }, options);
    expect(stdout.split('\n').filter(Boolean).toSorted()).toEqual([
      'HOME=/root',
      'KUBECONFIG=/k',
      'LANG=C.UTF-8',
      'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    ]);
  } finally {
    delete process.env.HOLDFAST_TEST_LEAK;
  }
});

test('it leads a session and a group of its own, in the root folder', async () => {
  const { stdout } = await sh('pwd; echo $$; set -- $(cat /proc/$$/stat); echo $5 $6');
  const [folder, pid, ids] = stdout.split('\n');
  expect([folder, ids]).toEqual(['/', `${pid} ${pid}`]);
});

test('a program that may not be executed is named with the reason', async () => {
  await expect(runner.run({ argv: ['/etc/passwd'], timeoutMs: 1_000 }, options)).rejects.toEqual(
    expect.objectContaining({ code: 'command.not_started', message: expect.stringContaining('EACCES') }),
  );
  await expect(runner.run({ argv: ['echo', 'a\0b'], timeoutMs: 1_000 }, options)).rejects.toEqual(
    expect.objectContaining({ code: 'command.not_started' }),
  );
});

test('the whole group ends at the deadline, also what SIGTERM does not end', async () => {
  const started = performance.now();
  const ended = await sh("trap '' TERM; echo $$; sleep 1001 & sleep 1002", { timeoutMs: 300 });
  expect(ended).toMatchObject({ exitCode: -1, timedOut: true, stderr: '' });
  // 0.3 s, then 2 s from SIGTERM to SIGKILL.
  expect(performance.now() - started).toBeGreaterThan(2_250);
  await expectGroupGone(ended.stdout.trim());
});

test('what holds the pipes when the leader has ended is cut after a second', async () => {
  const started = performance.now();
  const ended = await sh('echo $$; sleep 1003 & exit 4');
  expect(ended).toMatchObject({ exitCode: 4, timedOut: false });
  expect(performance.now() - started).toBeGreaterThan(950);
  expect(performance.now() - started).toBeLessThan(10_000);
  await expectGroupGone(ended.stdout.trim());
});

test('what only stays behind in the group ends with it', async () => {
  const ended = await sh('echo $$; sleep 1004 >/dev/null 2>&1 &');
  expect(ended).toMatchObject({ exitCode: 0, timedOut: false });
  await expectGroupGone(ended.stdout.trim());
});

test('one that left the session holds nobody up', async () => {
  const ended = await sh('echo $$; setsid sleep 3 & exit 0');
  expect(ended).toMatchObject({ exitCode: 0, timedOut: false });
});

test('what a child writes in the second after the leader is kept', async () => {
  expect(await sh('(sleep 0.3; echo late) & echo early')).toMatchObject({ stdout: 'early\nlate\n', exitCode: 0 });
});

test('a program that another one killed has no exit code', async () => {
  expect(await sh('kill -9 $$')).toEqual({ exitCode: -1, timedOut: false, stdout: '', stderr: '', dropped: 0 });
});

test('a program that does not read, and one that writes far more than is kept', async () => {
  expect(await sh('exec <&-; exit 7', { stdin: 'x'.repeat(1_000_000) })).toMatchObject({ exitCode: 7 });
  const flood = await sh('head -c 50000000 /dev/zero');
  expect(flood).toMatchObject({ exitCode: 0, dropped: 50_000_000 - 1_048_576 });
  expect(flood.stdout).toHaveLength(1_048_576);
});

test('bytes that are no UTF-8 have a mark in their place, and a mark of byte order stays', async () => {
  expect(await sh("printf 'a\\377b'; printf '\\357\\273\\277c' >&2")).toMatchObject({ stdout: 'a\ufffdb', stderr: '\ufeffc' });
});

test('after an abort nothing of the group is left, and no zombie', async () => {
  const abort = new AbortController();
  const before = new Set(await childrenOf(process.pid));
  const running = runner.run({ argv: ['sh', '-c', 'sleep 1005 & sleep 1006'], timeoutMs: 60_000 }, abort);
  const group = (await childrenOf(process.pid)).find((pid) => !before.has(pid)) ?? '';
  expect(group).not.toBe('');
  abort.abort(new Error('enough'));
  await expect(running).rejects.toThrow('enough');
  expect(await childrenOf(process.pid)).not.toContain(group);
  await expectGroupGone(group);
});

async function childrenOf(pid: number): Promise<string[]> {
  const tasks = await readdir(`/proc/${pid}/task`);
  const lists = await Promise.all(tasks.map((task) => readFile(`/proc/${pid}/task/${task}/children`, 'utf8').catch(() => '')));
  return lists.flatMap((list) => list.split(' ').filter(Boolean));
}

test('runs thousand programs one after another without keeping anything open', async () => {
  const open = async () => (await readdir('/proc/self/fd')).length;
  await sh('true');
  const before = await open();
  for (let at = 0; at < 100; at++) await Promise.all(Array.from({ length: 10 }, () => sh(':')));
  expect(await open()).toBeLessThanOrEqual(before + 3);
}, 120_000);
