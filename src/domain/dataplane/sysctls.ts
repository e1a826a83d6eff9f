/** A setting of the kernel that carrying connections needs. */
export interface NeededSysctl {
  /** `net.ipv4.ip_forward` */
  readonly name: string;
  readonly value: string;
  /** What does not work without it. */
  readonly without: string;
}

/** All that is ever set. One that the kernel does not have, as its module is not loaded, is not needed either. */
export const neededSysctls: readonly NeededSysctl[] = [
  {
    name: 'net.ipv4.ip_forward',
    value: '1',
    without: 'connections of other machines and of instances are not carried to endpoints',
  },
  {
    name: 'net.bridge.bridge-nf-call-iptables',
    value: '1',
    without: 'an instance does not reach another one on its bridge through a service',
  },
];

/** Those that the kernel has and that are set otherwise. */
export function wrongSysctls(now: ReadonlyMap<string, string>): readonly NeededSysctl[] {
  return neededSysctls.filter(({ name, value }) => (now.get(name) ?? value) !== value);
}
