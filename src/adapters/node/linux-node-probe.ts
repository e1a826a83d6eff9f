import { arch, availableParallelism, cpus, networkInterfaces, release, totalmem } from 'node:os';
import { type Gpu, type MachineInfo, machineAddresses } from '../../domain/node/model.js';
import { prettyName, readDisks, readGpus, readVersion } from '../../domain/node/probe.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { CommandRunner } from '../../ports/command/command-runner.js';
import type { HostFacts } from '../../ports/node/host-facts.js';
import type { NodeProbe } from '../../ports/node/node-probe.js';

/** A dead network mount holds `df` for ever, a sick driver nvidia-smi. */
const PROBE_MS = 5_000;
const MAX_OUTPUT_BYTES = 64 * 1024;
/** What programs say changes with an installation or a new disk: four processes a minute would be for nothing. */
const PROGRAMS_MS = 10 * 60_000;
const GPU_QUERY = ['--query-gpu=uuid,name,memory.total', '--format=csv,noheader,nounits'];
/** Programs whose version is worth knowing, and how they say it. */
const PROGRAMS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  containerd: ['containerd', '--version'],
  kubelet: ['kubelet', '--version'],
};

export interface LinuxNodeProbeParts {
  readonly commands: CommandRunner;
  readonly host: Pick<HostFacts, 'osRelease'>;
  readonly hostname: string;
  readonly clock: Clock;
}

/** What programs are asked for. */
type Asked = Pick<MachineInfo, 'disks' | 'gpus' | 'versions'>;

export class LinuxNodeProbe implements NodeProbe {
  readonly #parts: LinuxNodeProbeParts;
  #asked: { readonly at: number; readonly answers: Asked } | undefined;

  constructor(parts: LinuxNodeProbeParts) {
    this.#parts = parts;
  }

  async look(options: CallOptions): Promise<MachineInfo> {
    const { host, hostname } = this.#parts;
    const [os, asked] = await Promise.all([host.osRelease(options).then(prettyName), this.#programs(options)]);
    const model = cpus()[0]?.model.trim();
    return {
      ...{ hostname, os, kernel: release(), architecture: arch(), addresses: addresses(), memoryBytes: totalmem() },
      cpu: { model: model === '' ? undefined : model, count: availableParallelism() },
      ...asked,
    };
  }

  async #programs(options: CallOptions): Promise<Asked> {
    const now = this.#parts.clock.monotonic();
    if (this.#asked !== undefined && now - this.#asked.at < PROGRAMS_MS) return this.#asked.answers;
    const [disks, gpus, versions] = await Promise.all([
      this.#said(['df', '--local', '--portability', '--print-type', '--block-size=1'], options),
      this.#gpus(options),
      this.#versions(options),
    ]);
    const answers = { disks: disks === undefined ? undefined : readDisks(disks), gpus, versions };
    this.#asked = { at: now, answers };
    return answers;
  }

  async #gpus(options: CallOptions): Promise<readonly Gpu[] | undefined> {
    const said = await this.#said(['nvidia-smi', ...GPU_QUERY], options);
    return said === undefined ? undefined : readGpus(said);
  }

  async #versions(options: CallOptions): Promise<Readonly<Record<string, string>>> {
    const found = await Promise.all(
      Object.entries(PROGRAMS).map(async ([name, argv]) => {
        const version = readVersion((await this.#said(argv, options)) ?? '');
        return version === undefined ? [] : [[name, version] as const];
      }),
    );
    return Object.fromEntries(found.flat());
  }

  /** Undefined when the program is not there, hangs, fails, or says more than anybody would. */
  async #said(argv: readonly [string, ...string[]], { signal }: CallOptions): Promise<string | undefined> {
    try {
      const command = { argv, timeoutMs: PROBE_MS, maxOutputBytes: MAX_OUTPUT_BYTES };
      const { exitCode, stdout, dropped } = await this.#parts.commands.run(command, { signal });
      return exitCode === 0 && dropped === 0 ? stdout : undefined;
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
  }
}

function addresses(): readonly string[] {
  const all = Object.entries(networkInterfaces()).flatMap(([device, entries = []]) =>
    entries.map(({ address }) => ({ device, address })),
  );
  return machineAddresses(all);
}
