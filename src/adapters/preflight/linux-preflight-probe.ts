import { hash, X509Certificate } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { arch, release } from 'node:os';
import { AgentError } from '../../domain/kernel/errors.js';
import type { AbsolutePath } from '../../domain/kernel/paths.js';
import type { CaFile, Lookup, PreflightFacts, Wanted, Way } from '../../domain/preflight/model.js';
import * as read from '../../domain/preflight/read.js';
import { CLUSTER_PATHS, FOLDERS, MODULES, PROGRAMS, SYSCTLS } from '../../domain/preflight/wants.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { CommandRunner } from '../../ports/command/command-runner.js';
import type { HostFacts } from '../../ports/node/host-facts.js';
import type { PreflightProbe } from '../../ports/preflight/preflight-probe.js';
import { findReach } from '../certificate/reachability.js';
import { readTrustRoot } from '../certificate/trust-root.js';
import { errnoOf } from '../files/errno.js';
import { lockHolder } from '../node/older-agent.js';
import { probeFsync } from './fsync-probe.js';
import { MachineReader } from './machine-reader.js';
import { NetworkProber } from './network-prober.js';

/** For each fact that is read here; a dead network mount holds stat(2) for ever. */
const FACT_MS = 5_000;
/** For three attempts of 5 s. */
const WAY_MS = 16_000;
const COMMAND_MS = 4_000;
const ATTEMPTS = 3;
const PROGRAM_FOLDERS = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
const PACKAGE_LOCKS = ['/var/lib/dpkg/lock-frontend', '/var/lib/dpkg/lock', '/var/lib/apt/lists/lock'];
const PROXIES = ['http_proxy', 'https_proxy', 'all_proxy', 'no_proxy'];

export interface LinuxPreflightProbeParts {
  readonly root: AbsolutePath;
  readonly host: Pick<HostFacts, 'osRelease' | 'networks'>;
  /** Undefined where `root` is another machine's: what programs say is of this one. */
  readonly commands: CommandRunner | undefined;
  readonly clock: Clock;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Of a Linux machine, by its files below `root`; user and architecture are this process's. */
export class LinuxPreflightProbe implements PreflightProbe {
  readonly #parts: LinuxPreflightProbeParts;
  readonly #files: MachineReader;
  readonly #others: NetworkProber;

  constructor(parts: LinuxPreflightProbeParts) {
    this.#parts = parts;
    this.#files = new MachineReader(parts.root);
    this.#others = new NetworkProber({ ...parts, files: this.#files });
  }

  async look(wanted: Wanted, options: CallOptions): Promise<PreflightFacts> {
    const [hardware, system, network, egress] = await Promise.all([
      this.#hardware(options),
      this.#system(options),
      this.#network(wanted, options),
      this.#egress(wanted, options),
    ]);
    options.signal.throwIfAborted();
    const { clock, env } = this.#parts;
    return {
      now: clock.now(),
      userId: process.getuid?.(),
      architecture: arch(),
      proxy: proxies(env),
      ...hardware,
      ...system,
      ...network,
      ...egress,
    };
  }

  #hardware(options: CallOptions) {
    const files = this.#files;
    return facts(options, {
      init: () => files.trimmed('/proc/1/comm'),
      programs: () => this.#programs(),
      osRelease: () => this.#parts.host.osRelease(options),
      cpus: () => files.text('/proc/cpuinfo').then(whenThere(read.readCpus)),
      memoryBytes: () => files.text('/proc/meminfo').then(whenThere(read.readMemory)),
      filesystems: () => files.filesystems(FOLDERS),
      swaps: () => files.text('/proc/swaps').then(whenThere(read.readSwaps)),
      openFiles: () => files.text('/proc/self/limits').then(whenThere(read.readOpenFiles)),
      fsyncMs: async (signal) => probeFsync(files.at(await files.nearest('/var/lib')), signal),
    });
  }

  #system(options: CallOptions) {
    const files = this.#files;
    return facts(options, {
      capabilities: () => files.text('/proc/self/status').then(whenThere(read.readCapabilities)),
      listeners: () => this.#listeners(),
      modules: () => this.#modules(options),
      cgroup: () => this.#cgroup(),
      sysctls: () => this.#sysctls(),
      clusters: () => files.those(CLUSTER_PATHS),
      hostname: () => files.trimmed('/proc/sys/kernel/hostname'),
      machineId: async () => (await files.trimmed('/etc/machine-id')) ?? ((await files.has('/etc')) ? '' : undefined),
      dbusMachineId: () => files.trimmed('/var/lib/dbus/machine-id'),
      isClockSynchronized: () => this.#isClockSynchronized(options),
      packageLock: () => this.#packageLock(),
    });
  }

  #network(wanted: Wanted, options: CallOptions) {
    const { server, ca } = wanted;
    return facts(options, {
      nameservers: () => this.#files.text('/etc/resolv.conf').then(whenThere(read.readNameservers)),
      networks: () => this.#parts.host.networks(options),
      ca: async () => (ca === undefined ? undefined : readCa(ca, options)),
      lookup: async () => (server === undefined ? undefined : lookUp(server.host)),
      way: { ms: WAY_MS, read: async (signal: AbortSignal) => (server === undefined ? undefined : findWay(wanted, signal)) },
    });
  }

  #egress(wanted: Wanted, options: CallOptions) {
    const others = this.#others;
    return facts(options, {
      answers: (signal) => others.answers(wanted, signal),
      knownAnswer: (signal) => others.knownAnswer(wanted, signal),
      serverClock: (signal) => others.serverClock(wanted, signal),
      repositories: (signal) => others.repositories(wanted, signal),
      udpEcho: (signal) => others.udpEcho(wanted, signal),
      firewall: () => others.firewall(options),
    });
  }

  async #programs(): Promise<readonly string[] | undefined> {
    const folders = await Promise.all(PROGRAM_FOLDERS.map((folder) => this.#files.names(folder)));
    if (folders.every((names) => names === undefined)) return undefined;
    return PROGRAMS.filter((program) => folders.some((names) => names?.includes(program)));
  }

  async #listeners() {
    const tables = await Promise.all(
      (['tcp', 'tcp', 'udp', 'udp'] as const).map(async (protocol, at) => {
        const text = await this.#files.text(`/proc/net/${protocol}${at % 2 === 0 ? '' : '6'}`);
        return text === undefined ? undefined : read.readListeners(protocol, text);
      }),
    );
    // Without IPv6 there are no tables of it.
    return tables[0] === undefined || tables[2] === undefined ? undefined : tables.flatMap((table) => table ?? []);
  }

  async #modules(options: CallOptions): Promise<Readonly<Record<string, boolean | undefined>>> {
    const [loaded, builtin] = await Promise.all([
      this.#files.text('/proc/modules'),
      this.#files.text(`/lib/modules/${release()}/modules.builtin`),
    ]);
    const all = Object.entries(MODULES).map(async ([module, signs]) => {
      const isLoaded = loaded?.split('\n').some((line) => line.startsWith(`${module} `));
      const isThere =
        isLoaded || (await this.#files.those(signs)).length > 0 || (builtin !== undefined && read.hasBuiltin(builtin, module));
      return [module, isThere ? true : await this.#loads(module, builtin !== undefined, options)] as const;
    });
    return Object.fromEntries(await Promise.all(all));
  }

  /** `modprobe --dry-run` finds a file, and not whether the kernel takes it. @param isListed whether the kernel's list of modules is here */
  async #loads(module: string, isListed: boolean, options: CallOptions): Promise<boolean | undefined> {
    const exitCode = await this.#exit(['modprobe', '--', module], options);
    if (exitCode === 0) return true;
    return isListed ? false : undefined;
  }

  async #exit(argv: readonly [string, ...string[]], options: CallOptions): Promise<number | undefined> {
    return (await this.#parts.commands?.run({ argv, timeoutMs: COMMAND_MS }, options).catch(() => undefined))?.exitCode;
  }

  async #cgroup(): Promise<readonly string[] | 'v1' | undefined> {
    const controllers = await this.#files.trimmed('/sys/fs/cgroup/cgroup.controllers');
    if (controllers !== undefined) return controllers.split(/\s+/);
    const names = await this.#files.names('/sys/fs/cgroup');
    return names === undefined || names.length === 0 ? undefined : 'v1';
  }

  async #sysctls(): Promise<Readonly<Record<string, string>>> {
    const all = Object.keys(SYSCTLS).map(async (name) => {
      const value = await this.#files.trimmed(`/proc/sys/${name.replaceAll('.', '/')}`);
      return value === undefined ? [] : [[name, value] as const];
    });
    return Object.fromEntries((await Promise.all(all)).flat());
  }

  async #isClockSynchronized(options: CallOptions): Promise<boolean | undefined> {
    const argv = ['timedatectl', 'show', '--property=NTPSynchronized', '--value'] as const;
    const said = await this.#parts.commands?.run({ argv, timeoutMs: COMMAND_MS }, options);
    const answer = said?.exitCode === 0 ? said.stdout.trim() : undefined;
    return answer === 'yes' ? true : answer === 'no' ? false : undefined;
  }

  async #packageLock(): Promise<string | undefined> {
    const locks = this.#files.at('/proc/locks');
    if (!(await this.#files.has('/proc/locks'))) return undefined;
    const holders = await Promise.all(PACKAGE_LOCKS.map((path) => lockHolder(this.#files.at(path), locks)));
    return holders.find((holder) => holder !== undefined) ?? '';
  }
}

type Read<T> = (signal: AbortSignal) => Promise<T | undefined>;
type Reads<F> = { readonly [K in keyof F]: Read<F[K]> | { readonly ms: number; readonly read: Read<F[K]> } };

/** All at once; what fails, or takes longer than its time, is undefined. */
async function facts<F extends object>(
  { signal }: CallOptions,
  reads: Reads<F>,
): Promise<{ readonly [K in keyof F]: F[K] | undefined }> {
  const found: Partial<F> = {};
  const all = (Object.keys(reads) as (keyof F)[]).map(async (name) => {
    const given = reads[name];
    const { ms, read: once } = typeof given === 'function' ? { ms: FACT_MS, read: given } : given;
    const value = await inTime(once, ms, signal);
    if (value !== undefined) found[name] = value;
  });
  await Promise.all(all);
  return found as { readonly [K in keyof F]: F[K] | undefined };
}

async function inTime<T>(once: Read<T>, ms: number, signal: AbortSignal): Promise<T | undefined> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(ms)]);
  const { promise: over, resolve } = Promise.withResolvers<undefined>();
  limit.addEventListener('abort', () => resolve(undefined), { once: true });
  return Promise.race([once(limit).catch(() => undefined), over]);
}

function whenThere<T>(of: (text: string) => T | undefined): (text: string | undefined) => T | undefined {
  return (text) => (text === undefined ? undefined : of(text));
}

function proxies(env: LinuxPreflightProbeParts['env']): Readonly<Record<string, string>> {
  return Object.fromEntries(
    PROXIES.flatMap((name) => {
      const value = env[name] ?? env[name.toUpperCase()];
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}

async function readCa(
  file: { readonly path: string; readonly sha256?: string | undefined },
  options: CallOptions,
): Promise<CaFile> {
  try {
    const pem = await readTrustRoot(file, options);
    return { sha256: hash('sha256', pem, 'hex'), notAfter: Date.parse(new X509Certificate(pem).validTo) };
  } catch (error) {
    options.signal.throwIfAborted();
    return { problem: error instanceof AgentError ? error.message : String(error) };
  }
}

async function lookUp(host: string): Promise<Lookup> {
  const start = performance.now();
  try {
    const { length } = await lookup(host, { all: true });
    return { addresses: length, ms: performance.now() - start };
  } catch (error) {
    return { failed: errnoOf(error) ?? String(error), ms: performance.now() - start };
  }
}

/** One lost packet blocks nobody: the first attempt that comes to TLS stands. */
async function findWay({ server, ca }: Wanted, signal: AbortSignal): Promise<Way | undefined> {
  if (server === undefined) return undefined;
  const root = ca === undefined ? '' : await readTrustRoot({ path: ca.path }, { signal }).catch(() => '');
  let way: Way | undefined;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { reach, serverCertificate } = await findReach({ ...server, ca: root }, { signal });
    way = { reach, isDistrusted: serverCertificate !== undefined };
    if (reach.stage !== 'silent' && reach.stage !== 'closed') return way;
  }
  return way;
}
