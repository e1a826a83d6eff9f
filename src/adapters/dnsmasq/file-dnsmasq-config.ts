import { createHash } from 'node:crypto';
import { constants, mkdtemp, open, rm, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { DnsmasqMemory, PlacedConfig } from '../../domain/dnsmasq/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { CommandRunner } from '../../ports/command/command-runner.js';
import type { DnsmasqConfig } from '../../ports/dnsmasq/dnsmasq-config.js';
import { replaceFile, syncFolder, writeSynced } from '../files/durable-file.js';
import { errnoOf } from '../files/errno.js';
import { readTextFile } from '../files/text-file.js';
import { encodeMemory, parseMemory } from './dnsmasq-memory.js';

/** Twice what an instruction may bring. */
const MAX_BYTES = 8 * 1024 * 1024;
const TEST_MS = 10_000;

export interface FileDnsmasqConfigOptions {
  /** In a folder that dnsmasq reads; it passes over the dotted names of unfinished files. */
  readonly file: string;
  /** In a folder of ours. */
  readonly memoryFile: string;
  readonly commands: CommandRunner;
}

export class FileDnsmasqConfig implements DnsmasqConfig {
  readonly #file: string;
  readonly #memoryFile: string;
  readonly #commands: CommandRunner;

  constructor({ file, memoryFile, commands }: FileDnsmasqConfigOptions) {
    this.#file = file;
    this.#memoryFile = memoryFile;
    this.#commands = commands;
  }

  async read({ signal }: CallOptions): Promise<PlacedConfig | undefined> {
    signal.throwIfAborted();
    try {
      return await readPlaced(this.#file);
    } catch (cause) {
      if (errnoOf(cause) === 'ENOENT') return undefined;
      throw this.#unusable('cannot be read', cause);
    }
  }

  async test(contents: Uint8Array, options: CallOptions): Promise<string | undefined> {
    options.signal.throwIfAborted();
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-dnsmasq-'));
    try {
      const file = join(folder, 'new.conf');
      await writeSynced(file, contents, 0o600);
      const argv = ['dnsmasq', '--test', `--conf-file=${file}`] as const;
      const { exitCode, timedOut, stderr, stdout } = await this.#commands.run({ argv, timeoutMs: TEST_MS }, options);
      if (timedOut) return 'dnsmasq --test took too long';
      if (exitCode === 0) return undefined;
      const said = (stderr.trim() || stdout.trim()).replaceAll(file, 'the new file').replace(/^\s*dnsmasq: /, '');
      return `dnsmasq --test: ${said.slice(0, 1_000) || `status ${exitCode}`}`;
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async place(contents: Uint8Array | undefined, options: CallOptions): Promise<void> {
    options.signal.throwIfAborted();
    try {
      if (contents !== undefined) return await replaceFile(this.#file, contents, { mode: 0o644, signal: options.signal });
      await unlink(this.#file).catch((error: unknown) => {
        if (errnoOf(error) !== 'ENOENT') throw error;
      });
      await syncFolder(dirname(this.#file));
    } catch (cause) {
      options.signal.throwIfAborted();
      throw this.#unusable('cannot be written', cause);
    }
  }

  async remembered(options: CallOptions): Promise<DnsmasqMemory> {
    const read = await readTextFile(this.#memoryFile, 4 * MAX_BYTES, options);
    return parseMemory(read.found === 'text' ? read.text : '');
  }

  async remember(memory: DnsmasqMemory, options: CallOptions): Promise<void> {
    try {
      await replaceFile(this.#memoryFile, encodeMemory(memory), options);
    } catch (cause) {
      options.signal.throwIfAborted();
      throw new AgentError('dnsmasq.unusable', { problem: `${this.#memoryFile} cannot be written: ${text(cause)}` }, { cause });
    }
  }

  #unusable(what: string, cause: unknown): AgentError {
    const hint = errnoOf(cause) === 'ENOENT' ? ' (its folder is missing)' : '';
    return new AgentError('dnsmasq.unusable', { problem: `${this.#file} ${what}: ${text(cause)}${hint}` }, { cause });
  }
}

/** Contents and mark are of the same file, whoever replaces it meanwhile. */
async function readPlaced(path: string): Promise<PlacedConfig> {
  // Without O_NONBLOCK a FIFO in its place holds us up for ever.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const facts = await file.stat({ bigint: true });
    if (!facts.isFile()) throw new Error('it is not a regular file');
    if (facts.size > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes`);
    const contents = await file.readFile();
    const digest = createHash('sha256').update(contents).digest('hex');
    return { contents, digest, mark: `${facts.ino}.${facts.size}.${facts.ctimeNs}` };
  } finally {
    await file.close();
  }
}

function text(cause: unknown): string {
  return errnoOf(cause) ?? (cause instanceof Error ? cause.message : String(cause));
}
