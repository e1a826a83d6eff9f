import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AgentError } from '../../domain/kernel/errors.js';
import { decodeServers, encodeServers } from '../../domain/loadbalancer/memory.js';
import type { ApiServer } from '../../domain/loadbalancer/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { CommandRunner } from '../../ports/command/command-runner.js';
import type { BalancerConfig } from '../../ports/loadbalancer/balancer-config.js';
import { replaceFile, writeSynced } from '../files/durable-file.js';
import { errnoOf } from '../files/errno.js';
import { readTextFile } from '../files/text-file.js';

const MAX_BYTES = 1024 * 1024;
const TEST_MS = 10_000;

export interface FileBalancerConfigOptions {
  readonly file: string;
  /** In a folder of ours. */
  readonly memoryFile: string;
  readonly commands: CommandRunner;
  /** Is there when the kernel has IPv6. */
  readonly ipv6Facts?: string;
}

export class FileBalancerConfig implements BalancerConfig {
  readonly #file: string;
  readonly #memoryFile: string;
  readonly #commands: CommandRunner;
  readonly #ipv6Facts: string;

  constructor({ file, memoryFile, commands, ipv6Facts = '/proc/net/if_inet6' }: FileBalancerConfigOptions) {
    this.#file = file;
    this.#memoryFile = memoryFile;
    this.#commands = commands;
    this.#ipv6Facts = ipv6Facts;
  }

  async hasIpv6({ signal }: CallOptions): Promise<boolean> {
    signal.throwIfAborted();
    return stat(this.#ipv6Facts).then(
      () => true,
      () => false,
    );
  }

  async read(options: CallOptions): Promise<string | undefined> {
    const read = await readTextFile(this.#file, MAX_BYTES, options);
    if (read.found === 'unusable') throw unusable(`${this.#file} ${read.problem}`, read.cause);
    return read.found === 'text' ? read.text : undefined;
  }

  async test(text: string, options: CallOptions): Promise<string | undefined> {
    options.signal.throwIfAborted();
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-haproxy-'));
    try {
      const file = join(folder, 'haproxy.cfg');
      await writeSynced(file, text, 0o600);
      const argv = ['haproxy', '-c', '-f', file] as const;
      const { exitCode, timedOut, stderr, stdout } = await this.#commands.run({ argv, timeoutMs: TEST_MS }, options);
      if (timedOut) return 'haproxy -c took too long';
      if (exitCode === 0) return undefined;
      return `haproxy -c: ${(stderr.trim() || stdout.trim()).replaceAll(file, 'the new file').slice(0, 1_000) || `status ${exitCode}`}`;
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async place(text: string, options: CallOptions): Promise<void> {
    await this.#replace(this.#file, text, 0o644, options);
  }

  async remembered(options: CallOptions): Promise<readonly ApiServer[] | undefined> {
    const read = await readTextFile(this.#memoryFile, MAX_BYTES, options);
    return read.found === 'text' ? decodeServers(read.text) : undefined;
  }

  async remember(servers: readonly ApiServer[], options: CallOptions): Promise<void> {
    await this.#replace(this.#memoryFile, encodeServers(servers), 0o600, options);
  }

  async #replace(file: string, text: string, mode: number, options: CallOptions): Promise<void> {
    try {
      await replaceFile(file, text, { ...options, mode });
    } catch (cause) {
      options.signal.throwIfAborted();
      const hint = errnoOf(cause) === 'ENOENT' ? ' (its folder is missing)' : '';
      throw unusable(`${file} cannot be written: ${errnoOf(cause) ?? String(cause)}${hint}`, cause);
    }
  }
}

function unusable(problem: string, cause: unknown): AgentError {
  return new AgentError('loadbalancer.unusable', { problem }, { cause });
}
