import { OWN_DEVICES } from '../certificate/host.js';
import type { NodeName } from '../identity/model.js';
import { nodeName } from '../identity/model.js';
import { canonicalJson } from '../kernel/canonical-json.js';
import { type LogKey, logKey, type Revision } from '../log/model.js';

/** What is read of a machine. Absent: not probed; an empty list: there are none. */
export interface MachineInfo {
  readonly hostname: string;
  /** As os-release names it: `Debian GNU/Linux 12 (bookworm)`. */
  readonly os?: string | undefined;
  readonly kernel?: string | undefined;
  /** As Node calls it: `x64`, `arm64`. */
  readonly architecture: string;
  /** Of interfaces of the machine, without prefix, in order. */
  readonly addresses: readonly string[];
  readonly cpu: { readonly model?: string | undefined; readonly count: number };
  readonly memoryBytes?: number | undefined;
  /** Real filesystems. */
  readonly disks?: readonly Disk[] | undefined;
  readonly gpus?: readonly Gpu[] | undefined;
  /** By program: `kubelet`, `containerd`. */
  readonly versions: Readonly<Record<string, string>>;
}

export interface Disk {
  readonly mount: string;
  readonly device: string;
  readonly filesystem: string;
  readonly bytes: number;
}

/** Named by its UUID: an index changes with the order of the bus. */
export interface Gpu {
  readonly uuid: string;
  readonly model: string;
  readonly memoryBytes: number;
}

/** One record for each node, written by its agent when it changes. */
export interface NodeInfo extends MachineInfo {
  /** Of this daemon. */
  readonly version: string;
  /** Of the identity file. */
  readonly labels: Readonly<Record<string, string>>;
  /** State of each part of the agent, by its name. */
  readonly subsystems: Readonly<Record<string, string>>;
}

export interface KnownNode {
  readonly info: NodeInfo;
  readonly revision: Revision;
}

const PREFIX = 'node/';

export function nodeInfoKey(name: NodeName): LogKey {
  return logKey(`${PREFIX}${name}`);
}

/** Undefined for a key of something else. */
export function nodeOfInfoKey(key: LogKey): NodeName | undefined {
  return key.startsWith(PREFIX) ? nodeName(key.slice(PREFIX.length)) : undefined;
}

/** Equal records have equal text. */
export function formatNodeInfo(info: NodeInfo): string {
  return canonicalJson(info);
}

/** Our own, and those that come and go with workloads: their addresses are not the machine's. */
const NOT_THE_MACHINES = [...OWN_DEVICES, /^cni/, /^veth/, /^docker/, /^br-/, /^cali/, /^flannel/];

export interface InterfaceAddress {
  readonly device: string;
  readonly address: string;
}

export function machineAddresses(all: readonly InterfaceAddress[]): readonly string[] {
  const own = all.filter(({ device, address }) => !NOT_THE_MACHINES.some((name) => name.test(device)) && !isLinkLocal(address));
  return [...new Set(own.map(({ address }) => address))].sort();
}

function isLinkLocal(address: string): boolean {
  return /^(?:169\.254\.|fe[89ab][0-9a-f]:)/i.test(address);
}
