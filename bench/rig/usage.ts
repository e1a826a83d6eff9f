import { readdirSync, readFileSync } from 'node:fs';

/** USER_HZ: 100 on every architecture that Node runs on. */
const TICKS_PER_SECOND = 100;
const QUIET_CORES = 0.15;
const QUIET_SAMPLE_MS = 200;

interface ProcessTimes {
  readonly parent: number;
  /** Its own, seconds. */
  readonly own: number;
  /** With those of its children that have ended. */
  readonly all: number;
}

function timesOf(pid: number): ProcessTimes | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in brackets may hold anything: fields are counted from its end. Field 4 is the parent, 14 to 17 are the times.
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const [user = 0, system = 0, childUser = 0, childSystem = 0] = fields.slice(11, 15);
    const own = (user + system) / TICKS_PER_SECOND;
    return { parent: fields[1] ?? 0, own, all: own + (childUser + childSystem) / TICKS_PER_SECOND };
  } catch {
    return undefined;
  }
}

function allTimes(): ReadonlyMap<number, ProcessTimes> {
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger);
  return new Map(pids.flatMap((pid) => [[pid, timesOf(pid)] as const]).filter(hasTimes));
}

function hasTimes(entry: readonly [number, ProcessTimes | undefined]): entry is readonly [number, ProcessTimes] {
  return entry[1] !== undefined;
}

/** `root` and all that it started. */
function treeOf(root: number, times: ReadonlyMap<number, ProcessTimes>): ReadonlySet<number> {
  const children = new Map<number, number[]>();
  for (const [pid, { parent }] of times) children.set(parent, [...(children.get(parent) ?? []), pid]);
  const tree = new Set<number>();
  for (const pending = [root]; pending.length > 0; ) {
    const pid = pending.pop() ?? root;
    tree.add(pid);
    pending.push(...(children.get(pid) ?? []));
  }
  return tree;
}

/** CPU seconds of a process and its living descendants. */
export function cpuSeconds(root: number): number {
  const times = allTimes();
  return [...treeOf(root, times)].reduce((sum, pid) => sum + (times.get(pid)?.own ?? 0), 0);
}

/** Memory of a process and its descendants, bytes; shared pages are divided among those who share them. */
export function memoryBytes(root: number): number {
  return [...treeOf(root, allTimes())].reduce((sum, pid) => sum + proportionalBytes(pid), 0);
}

function proportionalBytes(pid: number): number {
  try {
    return Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** Those who started this process, and wait for it. */
function waiting(): ReadonlySet<number> {
  const times = allTimes();
  const found = new Set<number>();
  for (let pid = process.pid; pid > 1; pid = times.get(pid)?.parent ?? 0) found.add(pid);
  return found;
}

/** CPU seconds of every user process that is neither this one, nor started by it, nor one of `others`. */
function foreignCpuSeconds(others: ReadonlySet<number>): number {
  const times = allTimes();
  const ours = new Set([...treeOf(process.pid, times), ...others]);
  const isKernel = (pid: number, parent: number) => pid === 2 || parent === 2;
  return [...times].reduce((sum, [pid, { parent, all }]) => (ours.has(pid) || isKernel(pid, parent) ? sum : sum + all), 0);
}

/** Waits until nothing else uses the CPUs, for as long as the budget lasts. */
export class Quiet {
  #budgetMs: number;

  constructor(budgetMs: number) {
    this.#budgetMs = budgetMs;
  }

  async wait(): Promise<void> {
    let quiet = 0;
    for (let waited = 0; quiet < 2 && waited < 8_000 && this.#budgetMs > 0; waited += QUIET_SAMPLE_MS) {
      const cores = await foreignCores(() => new Promise((resolve) => setTimeout(resolve, QUIET_SAMPLE_MS)));
      quiet = cores.foreignCores < QUIET_CORES ? quiet + 1 : 0;
      this.#budgetMs -= QUIET_SAMPLE_MS;
    }
  }
}

/** Does something, and says how much of the CPUs others used meanwhile. */
export async function foreignCores<T>(work: () => Promise<T>): Promise<{ readonly value: T; readonly foreignCores: number }> {
  // Once: one that ends meanwhile would hand its own parent, with the times of all it ever started, over to the others.
  const others = waiting();
  const [before, startedAt] = [foreignCpuSeconds(others), performance.now()];
  const value = await work();
  const seconds = (performance.now() - startedAt) / 1_000;
  return { value, foreignCores: Math.max(0, foreignCpuSeconds(others) - before) / seconds };
}

export function isDisturbed(cores: number): boolean {
  return cores >= QUIET_CORES;
}
