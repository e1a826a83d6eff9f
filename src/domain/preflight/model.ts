import type { HostNetwork } from '../certificate/host.js';
import type { Reach } from '../certificate/registration.js';
import type { HostPort, Ipv4Range } from '../kernel/network.js';
import type { FirewallTable } from './firewall.js';
import type { Source } from './repositories.js';

export const preflightRoles = ['control-plane', 'worker'] as const;
export type PreflightRole = (typeof preflightRoles)[number];

/** What the machine is wanted for. */
export interface Wanted {
  readonly role: PreflightRole;
  /** Where it is to register; undefined: no check asks the network. */
  readonly server?: HostPort | undefined;
  /** The file of the registration root, and the digest that it must have. */
  readonly ca?: { readonly path: string; readonly sha256?: string | undefined } | undefined;
  /** Ranges that the cluster is to have: of pods, services, the overlay. */
  readonly ranges: readonly Ipv4Range[];
  /** URLs of http or https that the machine must come to. */
  readonly targets?: readonly string[] | undefined;
  /** A URL that answers 204 without content. */
  readonly knownAnswer?: string | undefined;
  /** Somebody that sends back what comes by UDP (RFC 862). */
  readonly udpEcho?: HostPort | undefined;
  /** Whether the repositories of apt are asked over the network. */
  readonly asksRepositories?: boolean | undefined;
}

export interface Filesystem {
  /** The folder that was asked for. */
  readonly path: string;
  readonly freeBytes: number;
  /** 0 where the filesystem does not count them. */
  readonly inodes: number;
  readonly freeInodes: number;
}

export interface Listener {
  readonly protocol: 'tcp' | 'udp';
  readonly port: number;
}

/** `problem` ends a sentence that begins with the file's name. */
export type CaFile = { readonly problem: string } | { readonly sha256: string; readonly notAfter: number };

/** `failed` has the resolver's own code. */
export type Lookup = { readonly addresses: number; readonly ms: number } | { readonly failed: string; readonly ms: number };

/** How far the best of the attempts came. */
export interface Way {
  readonly reach: Reach;
  /** Whether the server showed a certificate that `--ca` did not sign, or that is not valid now. */
  readonly isDistrusted: boolean;
}

/** What came of a request; no redirect was followed. `failed` ends a sentence that begins with the URL. */
export type Answer =
  | {
      readonly url: string;
      readonly status: number;
      /** Of a redirect. */
      readonly location?: string | undefined;
      /** The first bytes of the content, at most 1 KiB. */
      readonly begin: string;
      /** How far this machine is ahead of the answer's Date, milliseconds; negative: behind. */
      readonly offsetMs?: number | undefined;
    }
  | { readonly url: string; readonly failed: string };

/** `answer` is absent where it was not asked. */
export type RepositoryState = Source & {
  readonly answer?: { readonly status: number; readonly isSigned: boolean } | { readonly failed: string } | undefined;
};

/** All that is read of a machine, once, so that no two checks contradict. Undefined: it could not be found out. */
export interface PreflightFacts {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly userId?: number | undefined;
  /** Bits of CAP_* (capabilities(7)). */
  readonly capabilities?: bigint | undefined;
  /** Name of process 1. */
  readonly init?: string | undefined;
  /** Of those that were looked for, the ones that are there. */
  readonly programs?: readonly string[] | undefined;
  readonly osRelease?: string | undefined;
  readonly architecture?: string | undefined;
  readonly cpus?: number | undefined;
  readonly memoryBytes?: number | undefined;
  readonly filesystems?: readonly Filesystem[] | undefined;
  /** Devices and files. */
  readonly swaps?: readonly string[] | undefined;
  readonly listeners?: readonly Listener[] | undefined;
  /** By module; undefined where neither the kernel nor modprobe could tell. */
  readonly modules?: Readonly<Record<string, boolean | undefined>> | undefined;
  /** Controllers of cgroup v2; `v1` when the machine has the older one. */
  readonly cgroup?: readonly string[] | 'v1' | undefined;
  /** By name, `net.ipv4.ip_forward`; absent where it cannot be read. */
  readonly sysctls?: Readonly<Record<string, string>> | undefined;
  /** Paths that a cluster has left or uses. */
  readonly clusters?: readonly string[] | undefined;
  readonly hostname?: string | undefined;
  /** Empty: it has none. */
  readonly machineId?: string | undefined;
  /** That of D-Bus, which an image may carry from another machine; empty: it has none. */
  readonly dbusMachineId?: string | undefined;
  readonly nameservers?: readonly string[] | undefined;
  readonly ca?: CaFile | undefined;
  readonly networks?: readonly HostNetwork[] | undefined;
  readonly isClockSynchronized?: boolean | undefined;
  /** Process that holds the locks of the package manager; empty: nobody does. */
  readonly packageLock?: string | undefined;
  /** Variables of proxies, lower-case names. */
  readonly proxy: Readonly<Record<string, string>>;
  readonly openFiles?: number | undefined;
  /** The slowest but one of some writes that reach the disk, milliseconds. */
  readonly fsyncMs?: number | undefined;
  readonly lookup?: Lookup | undefined;
  readonly way?: Way | undefined;
  readonly answers?: readonly Answer[] | undefined;
  readonly knownAnswer?: Answer | undefined;
  /** The server's answer, for its Date only. */
  readonly serverClock?: Answer | undefined;
  readonly repositories?: readonly RepositoryState[] | undefined;
  readonly udpEcho?: 'answered' | { readonly failed: string } | undefined;
  readonly firewall?: readonly FirewallTable[] | undefined;
}

export type Verdict =
  | { readonly state: 'ok'; readonly finding: string }
  | { readonly state: 'unknown'; readonly finding: string }
  /** `cause` is the finding; `remedy` works when it is followed literally. */
  | { readonly state: 'warning' | 'problem'; readonly finding: string; readonly remedy: string };

/** One row of the catalogue. */
export interface Check {
  readonly name: string;
  /** For the documentation and people: what it wants. */
  readonly wants: string;
  /** One that cannot be left out. */
  readonly isFatal?: true;
  readonly judge: (facts: PreflightFacts, wanted: Wanted) => Verdict;
}

export type CheckResult = { readonly check: string } & (Verdict | { readonly state: 'skipped'; readonly finding: string });

export const ok = (finding: string): Verdict => ({ state: 'ok', finding });
export const warning = (finding: string, remedy: string): Verdict => ({ state: 'warning', finding, remedy });
export const problem = (finding: string, remedy: string): Verdict => ({ state: 'problem', finding, remedy });
/** It never blocks. */
export const unknown = (finding: string): Verdict => ({ state: 'unknown', finding });
