import { readdir, readFile, stat } from 'node:fs/promises';
import { LEGACY_LOCK } from '../../domain/adoption/model.js';
import { type AbsolutePath, under } from '../../domain/kernel/paths.js';

/** How programs of that kind are called, and their units. */
const PROGRAM = /^runos(-[a-z]+)*-agent$/;
const UNIT = /^runos(-[a-z]+)*-agent\.service$/;

/** Where units are enabled, by links in folders such as `multi-user.target.wants`. */
const UNITS = '/etc/systemd/system';

/** Another agent of the Nodeward protocol that runs. */
export interface OlderAgent {
  /** A sentence without its full stop: `process 77, runos-agent, runs`. */
  readonly what: string;
  /** The line that stops it and keeps it from starting again. */
  readonly stop: string;
}

/**
 * The agent of the Nodeward protocol that runs on this machine beside this process; undefined when none does. Two of them under one
 * identity take each other's streams, and both carry out what they are told. Changes nothing, holds nothing.
 * @param root prefix of all paths
 */
export async function findOlderAgent(root: AbsolutePath): Promise<OlderAgent | undefined> {
  const at = (path: string) => under(root, path as AbsolutePath);
  const proc = at('/proc');
  const holder = await lockHolder(at(LEGACY_LOCK), at('/proc/locks'));
  if (holder !== undefined && holder !== String(process.pid)) {
    return { what: `process ${holder} holds ${at(LEGACY_LOCK)}`, stop: stopLine(holder, await unitOf(proc, holder)) };
  }
  return runningAgent(proc);
}

/** Units of such agents that start with the machine, sorted. @param root prefix of all paths */
export async function enabledOlderUnits(root: AbsolutePath): Promise<readonly string[]> {
  const base = under(root, UNITS as AbsolutePath);
  const folders = (await readdir(base).catch(() => [])).filter((name) => /\.(wants|requires)$/.test(name));
  const names = await Promise.all(folders.map((folder) => readdir(`${base}/${folder}`).catch(() => [])));
  return [...new Set(names.flat().filter((name) => UNIT.test(name)))].sort();
}

/** The line that keeps a unit from starting again, and stops it. */
export function disableLine(units: readonly string[]): string {
  return `systemctl disable --now ${units.join(' ')}`;
}

function stopLine(pid: string, unit: string | undefined): string {
  return unit === undefined ? `kill ${pid}` : disableLine([unit]);
}

/** Of a lock of whatever kind, by device and inode (proc_locks(5)); undefined when nobody has it, or nobody can tell. */
export async function lockHolder(file: string, locks: string): Promise<string | undefined> {
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

/** By the name of the program, or by the unit that it belongs to: what an agent of a script language is called says nothing. */
async function runningAgent(proc: string): Promise<OlderAgent | undefined> {
  const names = await readdir(proc).catch(() => []);
  for (const pid of names.filter((name) => /^\d+$/.test(name))) {
    // One that has ended meanwhile is none.
    const command = await readFile(`${proc}/${pid}/cmdline`, 'latin1').catch(() => '');
    const program = command.split('\0', 1)[0]?.split('/').at(-1) ?? '';
    const unit = await unitOf(proc, pid);
    if (PROGRAM.test(program)) return { what: `process ${pid}, ${program}, runs`, stop: stopLine(pid, unit) };
    if (unit !== undefined && UNIT.test(unit)) return { what: `process ${pid} of ${unit} runs`, stop: disableLine([unit]) };
  }
  return undefined;
}

/** Of systemd, by the process's control group (cgroups(7)): `0::/system.slice/runos-agent.service`. */
async function unitOf(proc: string, pid: string): Promise<string | undefined> {
  const groups = await readFile(`${proc}/${pid}/cgroup`, 'latin1').catch(() => '');
  return groups.split('\n').flatMap((line) => /\/([\w@.:-]+\.service)(?:\/|$)/.exec(line)?.[1] ?? [])[0];
}
