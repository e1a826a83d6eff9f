/** What the rig asks a peer to serve. Back ends are `ip:port`. */
export interface Order {
  readonly address: string;
  readonly ports: readonly OrderedPort[];
}

export interface OrderedPort {
  readonly name: string;
  readonly port: number;
  readonly protocol: 'tcp' | 'udp';
  readonly backends: readonly string[];
}

export type DataPath = 'proxy' | 'kernel';

/** @throws Error that names the variable that is missing or wrong */
export function orderOf(env: NodeJS.ProcessEnv, protocols: readonly string[]): Order {
  const wanted = (['iperf:tcp', 'echo:tcp', 'echo:udp', 'http:tcp'] as const).flatMap((each): OrderedPort[] => {
    const [name = '', protocol] = each.split(':');
    const port = env[`RIG_${name.toUpperCase()}_PORT`];
    const backends = env[`RIG_BACKENDS_${name.toUpperCase()}`];
    if (port === undefined || backends === undefined || protocol === undefined || !protocols.includes(protocol)) return [];
    return [
      { name: `${name}-${protocol}`, port: Number(port), protocol: protocol as 'tcp' | 'udp', backends: backends.split(',') },
    ];
  });
  if (env.RIG_IP === undefined) throw new Error('RIG_IP is not set');
  if (wanted.length === 0) throw new Error('set RIG_ECHO_PORT and RIG_BACKENDS_ECHO, or the same of IPERF or HTTP');
  return { address: env.RIG_IP, ports: wanted };
}

/**
 * One service, since an address belongs to one. An endpoint of a service serves all of its ports, so the hosts are those that every
 * list names; the other peers dial one host each, too.
 * @throws Error when no host is in every list
 */
export function manifestOf({ address, ports }: Order): string {
  const byHost = ports.map(({ backends }) => new Map(backends.map((each) => hostAndPort(each))));
  const hosts = [...(byHost[0]?.keys() ?? [])].filter((host) => byHost.every((each) => each.has(host)));
  if (hosts.length === 0) throw new Error('no back-end host serves every port');
  const endpoints = hosts.map((host) => ({
    address: host,
    ports: Object.fromEntries(ports.map(({ name }, index) => [name, byHost[index]?.get(host)])),
  }));
  return JSON.stringify({
    apiVersion: 'holdfast/v1',
    kind: 'Service',
    metadata: { name: 'rig' },
    spec: {
      vip: address,
      ports: ports.map(({ name, port, protocol }) => ({ name, port, protocol })),
      endpoints,
    },
  });
}

function hostAndPort(text: string): readonly [string, number] {
  const colon = text.lastIndexOf(':');
  return [text.slice(0, colon), Number(text.slice(colon + 1))];
}

/** The smallest VIP range of which `address` can be given out: neither one of its first two nor its last. */
export function rangeAround(address: string): string {
  const value = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  for (let bits = 28; bits >= 8; bits--) {
    const size = 2 ** (32 - bits);
    const offset = value % size;
    if (offset >= 2 && offset < size - 1) return `${dotted(value - offset)}/${bits}`;
  }
  throw new Error(`${address} is in no VIP range`);
}

function dotted(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.');
}

/** A configuration file for the rig: the address, and what is being compared. */
export function configOf(
  address: string,
  { threads, busyPoll, path = 'proxy' }: { readonly threads?: string; readonly busyPoll?: string; readonly path?: DataPath },
): string {
  return JSON.stringify({
    logLevel: 'warn',
    vip: { range: rangeAround(address) },
    metrics: { listen: 'off' },
    dataplane: {
      path,
      ...(threads === undefined ? {} : { threads: Number(threads) }),
      ...(busyPoll === undefined ? {} : { busyPoll: `${busyPoll}us` }),
    },
  });
}
