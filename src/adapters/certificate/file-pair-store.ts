import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Pair, PairStore, StoredPair, StoredPairs } from '../../ports/certificate/pair-store.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import { ensureFolder, replaceFile } from '../files/durable-file.js';
import { errnoOf } from '../files/errno.js';
import { readTextFile } from '../files/text-file.js';
import { type PairFiles, PairFolder, readPair } from './pair-folder.js';
import { checkedPair } from './pair-reader.js';

export interface FilePairStoreConfig {
  /** `certs` in the data directory. */
  readonly folder: string;
  /**
   * Where other programs, and an older agent, look for the current pair: brought up to date at each `load` and `activate`; where that
   * fails it is a problem, and the pair is in use all the same. On a node that has no `folder` yet, the pair that is there is the current
   * one.
   */
  readonly flat: PairFiles;
}

const modes: Readonly<Record<keyof Pair, number>> = { ca: 0o644, certificate: 0o644, privateKey: 0o600 };

export class FilePairStore implements PairStore {
  readonly #folder: PairFolder;
  readonly #flat: PairFiles;
  #problems: readonly StatusProblem[] = [];

  constructor({ folder, flat }: FilePairStoreConfig) {
    this.#folder = new PairFolder(folder);
    this.#flat = flat;
  }

  async load(options: CallOptions): Promise<StoredPairs> {
    options.signal.throwIfAborted();
    try {
      return await this.#load(options);
    } catch (cause) {
      options.signal.throwIfAborted();
      const problem = `${this.#folder.path} cannot be read: ${errnoOf(cause) ?? String(cause)}`;
      throw new AgentError('certificate.unusable', { problem }, { cause });
    }
  }

  async #load(options: CallOptions): Promise<StoredPairs> {
    const problems: StatusProblem[] = [];
    const { current: linked, pairs, damaged } = await this.#read(options);
    for (const [serial, problem] of damaged) problems.push(damage(`${this.#folder.path}/${serial}`, problem));
    const newest = [...pairs.values()].sort((a, b) => b.notBefore - a.notBefore);
    const current = linked === undefined ? undefined : (pairs.get(linked) ?? newest[0]);
    if (linked !== undefined && current !== undefined && current.serial !== linked) {
      problems.push(
        damage(`${this.#folder.path}/current`, `leads to no whole pair; certificate ${current.serial} is used instead`),
      );
    }
    if (current === undefined) return this.#loadFlat(problems, newest[0], options);
    const unpublished = await this.#publish(current, options);
    this.#problems = unpublished === undefined ? problems : [...problems, damage('certificate files', unpublished)];
    return { current, staged: newest.find((pair) => pair.notBefore > current.notBefore) };
  }

  async stage(pair: Pair, options: CallOptions): Promise<StoredPair> {
    const checked = checkedPair(pair);
    await this.#writing(options, async () => {
      await this.#folder.tidy();
      await this.#adoptFlat(options);
      const there = await readPair(this.#folder.filesOf(checked.serial), options);
      if (there.found === 'pair' && isSame(there.pair, checked)) return;
      await this.#folder.put(checked);
    });
    return checked;
  }

  async activate(serial: string, options: CallOptions): Promise<void> {
    await this.#writing(options, async () => {
      const there = await readPair(this.#folder.filesOf(serial), options);
      if (there.found !== 'pair') {
        const problem = `certificate ${serial} is not kept whole in ${this.#folder.path}`;
        throw new AgentError('certificate.not_written', { problem });
      }
      const former = await this.#folder.current();
      if (former !== serial) {
        await this.#folder.pointTo(serial);
        for (const each of await this.#folder.serials()) {
          if (each !== serial && each !== former) await this.#folder.remove(each);
        }
      }
      const unpublished = await this.#publish(there.pair, options);
      this.#problems = unpublished === undefined ? [] : [damage('certificate files', unpublished)];
    });
  }

  async clear(options: CallOptions): Promise<void> {
    await this.#writing(options, async () => {
      // First what others use; the link last, so that a pair is current for as long as there is one.
      for (const part of ['certificate', 'privateKey', 'ca'] as const) await rm(this.#flat[part], { force: true });
      const current = await this.#folder.current();
      for (const serial of await this.#folder.serials()) if (serial !== current) await this.#folder.remove(serial);
      if (current !== undefined) await this.#folder.remove(current);
      await this.#folder.clear();
      this.#problems = [];
    });
  }

  problems(): readonly StatusProblem[] {
    return this.#problems;
  }

  async #read(options: CallOptions): Promise<{
    readonly current: string | undefined;
    readonly pairs: ReadonlyMap<string, StoredPair>;
    readonly damaged: ReadonlyMap<string, string>;
  }> {
    const pairs = new Map<string, StoredPair>();
    const damaged = new Map<string, string>();
    for (const serial of await this.#folder.serials()) {
      const found = await readPair(this.#folder.filesOf(serial), options);
      if (found.found === 'pair' && found.pair.serial === serial) pairs.set(serial, found.pair);
      else if (found.found === 'pair') damaged.set(serial, 'holds another certificate');
      else if (found.found === 'damaged') damaged.set(serial, found.problem);
    }
    return { current: await this.#folder.current(), pairs, damaged };
  }

  /** Without a link nothing of the folder was ever in use. */
  async #loadFlat(
    problems: readonly StatusProblem[],
    staged: StoredPair | undefined,
    options: CallOptions,
  ): Promise<StoredPairs> {
    const flat = await readPair(this.#flat, options);
    this.#problems = flat.found === 'damaged' ? [...problems, damage(dirname(this.#flat.certificate), flat.problem)] : problems;
    return { current: flat.found === 'pair' ? flat.pair : undefined, staged };
  }

  /** What an older agent has used is kept like any other: it is the way back. */
  async #adoptFlat(options: CallOptions): Promise<void> {
    if ((await this.#folder.current()) !== undefined) return;
    const flat = await readPair(this.#flat, options);
    if (flat.found !== 'pair') return;
    await this.#folder.put(flat.pair);
    await this.#folder.pointTo(flat.pair.serial);
  }

  /** What went wrong, in words. A crash in between leaves files that do not match; the next `load` mends them. */
  async #publish(pair: StoredPair, options: CallOptions): Promise<string | undefined> {
    for (const part of ['ca', 'privateKey', 'certificate'] as const) {
      const path = this.#flat[part];
      try {
        const there = await readTextFile(path, 1024 * 1024, options);
        if (there.found === 'text' && there.text === pair[part]) continue;
        await ensureFolder(dirname(path));
        await replaceFile(path, pair[part], { ...options, mode: modes[part] });
      } catch (error) {
        options.signal.throwIfAborted();
        return `${path} cannot be written: ${errnoOf(error) ?? String(error)}`;
      }
    }
    return undefined;
  }

  async #writing(options: CallOptions, work: () => Promise<void>): Promise<void> {
    options.signal.throwIfAborted();
    try {
      await work();
    } catch (cause) {
      options.signal.throwIfAborted();
      if (cause instanceof AgentError) throw cause;
      const problem = `${this.#folder.path} cannot be written: ${errnoOf(cause) ?? String(cause)}`;
      throw new AgentError('certificate.not_written', { problem }, { cause });
    }
  }
}

function isSame(a: Pair, b: Pair): boolean {
  return a.certificate === b.certificate && a.privateKey === b.privateKey && a.ca === b.ca;
}

function damage(subject: string, reason: string): StatusProblem {
  return {
    subject,
    reason,
    since: undefined,
    remedy: 'put the files back from a copy, or register the node again with a new token',
  };
}
