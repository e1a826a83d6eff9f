import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Sysctls } from '../../ports/dataplane/sysctls.js';
import { replaceFile } from '../files/durable-file.js';
import { readTextFile } from '../files/text-file.js';

/** A few names and values. */
const MAX_BYTES = 64 * 1024;

interface Changed {
  readonly before: string;
  readonly set: string;
}

/** Below /proc/sys; `memory` is JSON, `{"net.ipv4.ip_forward": {"before": "0", "set": "1"}}`. */
export class ProcSysctls implements Sysctls {
  readonly #memory: string;
  readonly #folder: string;

  constructor(memory: string, folder = '/proc/sys') {
    this.#memory = memory;
    this.#folder = folder;
  }

  async read(names: readonly string[], options: CallOptions): Promise<ReadonlyMap<string, string>> {
    const values = await Promise.all(names.map(async (name) => [name, await this.#value(name, options)] as const));
    return new Map(values.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])));
  }

  async set(wanted: ReadonlyMap<string, string>, options: CallOptions): Promise<void> {
    const now = await this.read([...wanted.keys()], options);
    const changed = new Map(await this.#changed(options));
    const due = [...wanted].filter(([name, value]) => now.get(name) !== value);
    if (due.length === 0) return;
    for (const [name, set] of due) {
      const before = changed.get(name)?.before ?? now.get(name);
      if (before === undefined) throw notSet(name, new Error('this kernel does not have it'));
      changed.set(name, { before, set });
    }
    await replaceFile(this.#memory, `${JSON.stringify(Object.fromEntries(changed))}\n`, options);
    for (const [name, value] of due) await this.#write(name, value, options);
  }

  async restore(options: CallOptions): Promise<void> {
    const changed = await this.#changed(options);
    const now = await this.read([...changed.keys()], options);
    for (const [name, { before, set }] of changed) if (now.get(name) === set) await this.#write(name, before, options);
    await rm(this.#memory, { force: true });
  }

  async #value(name: string, { signal }: CallOptions): Promise<string | undefined> {
    try {
      return (await readFile(this.#path(name), { encoding: 'utf8', signal })).trim();
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
  }

  async #write(name: string, value: string, { signal }: CallOptions): Promise<void> {
    try {
      await writeFile(this.#path(name), value, { flag: 'r+', signal });
    } catch (error) {
      signal.throwIfAborted();
      throw notSet(name, error);
    }
  }

  /** A damaged memory is none. */
  async #changed(options: CallOptions): Promise<ReadonlyMap<string, Changed>> {
    const file = await readTextFile(this.#memory, MAX_BYTES, options);
    return file.found === 'text' ? parse(file.text) : new Map();
  }

  #path(name: string): string {
    return join(this.#folder, ...name.split('.'));
  }
}

function notSet(name: string, error: unknown): AgentError {
  const problem = error instanceof Error ? error.message : String(error);
  return new AgentError('dataplane.sysctl_not_set', { problem: `${name}: ${problem}` }, { cause: error });
}

/** Names that lead out of the folder are none. */
function parse(text: string): ReadonlyMap<string, Changed> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return new Map();
    return new Map(Object.entries(value).filter(([name, each]) => /^[a-z\d_-]+(\.[a-z\d_-]+)+$/.test(name) && isChanged(each)));
  } catch {
    return new Map();
  }
}

function isChanged(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return 'before' in value && typeof value.before === 'string' && 'set' in value && typeof value.set === 'string';
}
