import { type IpAddress, isIpv6, isLoopback } from '../kernel/network.js';
import type { ServiceSpec } from '../resource/model.js';
import type { DataPath, L4Endpoint } from './model.js';

export const dataPathChoices = ['auto', 'kernel', 'proxy'] as const;
/** What a service asks for; `auto`: the kernel, unless it asks for something that only the proxy has. */
export type DataPathChoice = (typeof dataPathChoices)[number];

export type PathFacts = Pick<ServiceSpec, 'balance' | 'dataPath' | 'idleTimeout' | 'limits' | 'proxyProtocol'>;

/** What a service asks for and the kernel cannot do, as people read it; each is a reason for the proxy. */
export function proxyFeatures(spec: PathFacts): readonly string[] {
  const { balance, idleTimeout, limits, proxyProtocol } = spec;
  const { algorithm } = balance;
  return [
    ...(algorithm === 'least-connections' || algorithm === 'round-robin' ? [`balance.algorithm ${algorithm}`] : []),
    ...(idleTimeout === undefined ? [] : ['idleTimeout']),
    ...(limits === undefined ? [] : ['limits.connections']),
    ...(proxyProtocol?.accept === true || proxyProtocol?.send !== undefined ? ['proxyProtocol'] : []),
  ];
}

export interface PathDecision {
  readonly path: DataPath;
  /** Why it is the proxy, although nobody has asked for that. */
  readonly because?: string;
}

/** Of one port of a service on a node whose kernel carries services. */
export function decidePath(spec: ServiceSpec, address: IpAddress, endpoints: readonly L4Endpoint[]): PathDecision {
  if (spec.dataPath === 'proxy') return { path: 'proxy' };
  const [feature] = proxyFeatures(spec);
  if (feature !== undefined) return { path: 'proxy', because: `${feature} is the proxy's alone` };
  const other = endpoints.find((each) => isIpv6(each.address) !== isIpv6(address));
  if (other !== undefined)
    return { path: 'proxy', because: `endpoint ${other.address} is of another address family than the service` };
  const loopback = endpoints.find((each) => isLoopback(each.address));
  if (loopback !== undefined)
    return { path: 'proxy', because: `endpoint ${loopback.address} is reached by programs of this node alone` };
  return { path: 'kernel' };
}
