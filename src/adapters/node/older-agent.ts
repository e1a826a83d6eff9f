import { readdir, readFile, stat } from 'node:fs/promises';
import { type AbsolutePath, under } from '../../domain/kernel/paths.js';

/** What an agent that uses `/etc/runos` material holds (engine.md B5). */
const LOCK = '/run/runos/agent.lock';
/** How programs of that kind are called. */
const PROGRAM = /^runos(-[a-z]+)*-agent$/;

/**
 * Whether another agent of the Nodeward protocol runs on this machine, as a sentence; undefined when none does. Two of them under one
 * identity take each other's streams, and both carry out what they are told. Changes nothing, holds nothing.
 * @param root prefix of all paths
 */
export async function findOlderAgent(root: AbsolutePath): Promise<string | undefined> {
  const at = (path: string) => under(root, path as AbsolutePath);
  const holder = await lockHolder(at(LOCK), at('/proc/locks'));
  if (holder !== undefined) return `process ${holder} holds ${at(LOCK)}`;
  return runningProgram(at('/proc'));
}

/** Of a lock of whatever kind, by device and inode (proc_locks(5)); undefined when nobody has it, or nobody can tell. */
async function lockHolder(file: string, locks: string): Promise<string | undefined> {
  const [found, text] = await Promise.all([
    stat(file, { bigint: true }).catch(() => undefined),
    readFile(locks, 'latin1').catch(() => ''),
  ]);
  if (found === undefined) return undefined;
  const place = `${deviceOf(found.dev)}:${found.ino}`;
  for (const line of text.split('\n')) {
    const [, , , , pid, of] = line.trim().split(/\s+/);
    if (of === place) return pid;
  }
  return undefined;
}

/** `fe:00`, as the kernel prints it, of what stat(2) says (makedev(3)). */
function deviceOf(dev: bigint): string {
  const major = ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & ~0xfffn);
  const minor = (dev & 0xffn) | ((dev >> 12n) & ~0xffn);
  return [major, minor].map((part) => part.toString(16).padStart(2, '0')).join(':');
}

async function runningProgram(proc: string): Promise<string | undefined> {
  const names = await readdir(proc).catch(() => []);
  for (const pid of names.filter((name) => /^\d+$/.test(name))) {
    // One that has ended meanwhile is none.
    const command = await readFile(`${proc}/${pid}/cmdline`, 'latin1').catch(() => '');
    const program = command.split('\0', 1)[0]?.split('/').at(-1) ?? '';
    if (PROGRAM.test(program)) return `process ${pid}, ${program}, runs`;
  }
  return undefined;
}
