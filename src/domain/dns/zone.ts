import {
  containsRange,
  type IpAddress,
  type Ipv4Range,
  ipAddress,
  ipv4Range,
  ipv4ToNumber,
  isIpv6,
  numberToIpv4,
} from '../kernel/network.js';
import { type QualifiedName, qualifiedName, type ServicePort, type ServiceResource } from '../resource/model.js';
import type { ClusterState } from '../resource/state.js';
import { classes, type ResourceRecord, types } from './model.js';
import { type DomainName, lowerCase, nameKey, reverseOf } from './name.js';
import type { ReadyApex } from './ready.js';
import { addressData, nameData, serviceData, soaData, textData } from './records.js';

/** Names and numbers change with the services: nobody keeps an answer for longer, whether there is one or not. */
export const ZONE_TTL = 5;
const REFRESH = 3_600;
const RETRY = 600;
const EXPIRE = 86_400;

/** As an address is written in a name (RFC 1035, 3.5). */
const OCTET = /^(0|[1-9]\d{0,2})$/;

export type Found =
  /** Of the zone, and what it holds of the type; all of it for ANY. */
  | { readonly is: 'records'; readonly records: readonly ResourceRecord[] }
  /** The name is there, but nothing of that type. */
  | { readonly is: 'empty'; readonly soa: ResourceRecord }
  | { readonly is: 'absent'; readonly soa: ResourceRecord }
  /** Somebody else's name. */
  | { readonly is: 'foreign' };

export interface ZoneParts {
  /** `holdfast`; at least one label. */
  readonly origin: DomainName;
  readonly state: ClusterState;
  /** Where this zone is answered: the origin's own address, as no service can have that name. */
  readonly server?: IpAddress | undefined;
}

interface Asked {
  readonly name: DomainName;
  readonly type: number;
  /** Of the zone that the name is in. */
  readonly apex: DomainName;
}

interface Named {
  readonly resource: ServiceResource;
  readonly address: IpAddress;
}

/**
 * The names of services: `SERVICE.NAMESPACE.ORIGIN` has the service's address, `_PORT._PROTOCOL.` before it its ports (RFC 2782), the
 * reverse name of the address leads back. Records are made from the state when they are asked for: of 10,000 services they would take 40 MB.
 */
export class Zone {
  readonly #origin: DomainName;
  readonly #originKeys: readonly string[];
  readonly #state: ClusterState;
  readonly #apex: readonly ResourceRecord[];
  /** Services that have names, by namespace: a name above others is there (RFC 4592, 2.2.2). */
  readonly #named = new Map<string, Set<QualifiedName>>();
  readonly #mailbox: DomainName;
  #apexes: { readonly vipRange: string | undefined; readonly all: readonly ReadyApex[] } | undefined;

  constructor({ origin, state, server }: ZoneParts) {
    this.#origin = origin;
    this.#originKeys = keysOf(origin);
    this.#state = state;
    this.#mailbox = ['hostmaster', ...origin];
    const own = server === undefined ? [] : [addressRecord(origin, server)];
    this.#apex = [record(origin, types.NS, nameData(origin)), record(origin, types.TXT, textData('holdfast')), ...own];
  }

  /** Of services that have changed, or are gone. */
  update(services: Iterable<QualifiedName>): void {
    for (const service of services) {
      const namespace = service.slice(0, service.indexOf('/'));
      const named = this.#named.get(namespace) ?? new Set();
      if (this.#service(service) === undefined) named.delete(service);
      else named.add(service);
      if (named.size === 0) this.#named.delete(namespace);
      else this.#named.set(namespace, named);
    }
  }

  /** Names that are there for the sake of a service; undefined when it has none. */
  namesOf(service: QualifiedName): readonly DomainName[] | undefined {
    const named = this.#service(service);
    if (named === undefined) return undefined;
    const { metadata, spec } = named.resource;
    const owner: DomainName = [metadata.name, metadata.namespace, ...this.#origin];
    const protocols = new Set(spec.ports.map(({ protocol }) => protocol));
    return [
      owner,
      ...[...protocols].map((protocol) => [`_${protocol}`, ...owner]),
      ...new Map(
        spec.ports.map(({ name, protocol }) => [`${name} ${protocol}`, [`_${name}`, `_${protocol}`, ...owner]]),
      ).values(),
      ...(isIpv6(named.address) ? [] : [reverseOf(named.address)]),
    ];
  }

  /** Undefined when no service of the namespace has a name. */
  nameOfNamespace(namespace: string): DomainName | undefined {
    return this.#named.has(namespace) ? [namespace, ...this.#origin] : undefined;
  }

  get origin(): DomainName {
    return this.#origin;
  }

  /** Grows with every change of the state, modulo 2^32 (RFC 1982). */
  get serial(): number {
    return Number(this.#state.revision % 2n ** 32n);
  }

  /** Where this zone and the reverse ones of its addresses begin; the same object until they change. */
  apexes(): readonly ReadyApex[] {
    const { vipRange } = this.#state;
    if (this.#apexes === undefined || this.#apexes.vipRange !== vipRange) {
      const reverse = vipRange === undefined ? [] : reverseApexes(vipRange).map((name) => this.#readyApex(name, true));
      this.#apexes = { vipRange, all: [this.#readyApex(this.#origin, false), ...reverse] };
    }
    return this.#apexes.all;
  }

  #readyApex(name: DomainName, isReverse: boolean): ReadyApex {
    const numbers = { refresh: REFRESH, retry: RETRY, expire: EXPIRE, ttl: ZONE_TTL };
    return { name: lowerCase(name), server: lowerCase(this.#origin), mailbox: lowerCase(this.#mailbox), ...numbers, isReverse };
  }

  /** @param type of a record, or ANY */
  find(name: DomainName, type: number): Found {
    const keys = keysOf(name);
    const { length } = this.#originKeys;
    if (this.#originKeys.every((key, index) => keys.at(index - length) === key)) {
      return this.#found(this.#below(keys.slice(0, keys.length - length)), { name, type, apex: this.#origin });
    }
    const reverse = this.#reverse(keys);
    return reverse === undefined
      ? { is: 'foreign' }
      : this.#found(reverse.records, { name, type, apex: name.slice(-reverse.apexLabels) });
  }

  #found(all: readonly ResourceRecord[] | undefined, { name, type, apex }: Asked): Found {
    const soa = this.#soa(apex);
    if (all === undefined) return { is: 'absent', soa };
    const withSoa = name.length === apex.length ? [soa, ...all] : all;
    const records = type === types.ANY ? withSoa : withSoa.filter((each) => each.type === type);
    return records.length === 0 ? { is: 'empty', soa } : { is: 'records', records };
  }

  /** Undefined: there is no such name. Empty: it is there for those below it. */
  #below(keys: readonly string[]): readonly ResourceRecord[] | undefined {
    const [namespace, service, protocol, port, ...more] = [...keys].reverse();
    if (namespace === undefined) return this.#apex;
    if (service === undefined) return this.#named.has(namespace) ? [] : undefined;
    const named = this.#service(qualifiedName(namespace, service));
    if (named === undefined || more.length > 0) return undefined;
    const owner: DomainName = [service, namespace, ...this.#origin];
    if (protocol === undefined) return [addressRecord(owner, named.address)];
    const ofProtocol = named.resource.spec.ports.filter((each) => protocol === `_${each.protocol}`);
    if (ofProtocol.length === 0) return undefined;
    if (port === undefined) return [];
    const found = ofProtocol.filter((each) => port === `_${each.name}`);
    return found.length === 0 ? undefined : found.map((each) => serviceRecord(owner, each));
  }

  /** Of the reverse names that hold nothing but our addresses; what is between them and an address is taken to be there. */
  #reverse(
    keys: readonly string[],
  ): { readonly records: readonly ResourceRecord[] | undefined; readonly apexLabels: number } | undefined {
    const range = this.#state.vipRange === undefined ? undefined : ipv4Range(this.#state.vipRange);
    if (range === undefined || keys.at(-1) !== 'arpa' || keys.at(-2) !== 'in-addr') return undefined;
    const octets = Math.ceil(range.prefixLength / 8);
    const numbers = keys.slice(0, -2).reverse();
    if (!isIn(range, numbers, octets)) return undefined;
    const apexLabels = octets + 2;
    const isAbove = numbers.length < 4 && numbers.every((label) => OCTET.test(label));
    if (isAbove) return { records: [], apexLabels };
    const address = numbers.length === 4 ? ipAddress(numbers.join('.')) : undefined;
    const service = address === undefined ? undefined : this.#state.vips.get(address)?.service;
    const named = service === undefined ? undefined : this.#service(service);
    // Of a range smaller than /24 each address is a zone, and a zone is there.
    if (named === undefined || named.address !== address)
      return { records: octets === numbers.length ? [] : undefined, apexLabels };
    const { name, namespace } = named.resource.metadata;
    const leadsTo = nameData([name, namespace, ...this.#origin]);
    return { records: [record(reverseOf(named.address), types.PTR, leadsTo)], apexLabels };
  }

  #service(service: QualifiedName): Named | undefined {
    const resource = this.#state.service(service)?.resource;
    const address = this.#state.vips.ofService(service);
    if (resource === undefined || address === undefined) return undefined;
    return this.#state.vips.get(address)?.releasedAt === undefined ? { resource, address } : undefined;
  }

  #soa(apex: DomainName): ResourceRecord {
    const numbers = [this.serial, REFRESH, RETRY, EXPIRE, ZONE_TTL];
    return record(apex, types.SOA, soaData(this.#origin, this.#mailbox, numbers));
  }
}

/** All services of a state, for a zone that is new. */
export function servicesOf(state: ClusterState): readonly QualifiedName[] {
  return [...state.all()].flatMap(({ resource: { kind, metadata } }) =>
    kind === 'Service' ? [qualifiedName(metadata.namespace, metadata.name)] : [],
  );
}

/** Whether the network of the first `octets` numbers is one of the range. */
function isIn(range: Ipv4Range, numbers: readonly string[], octets: number): boolean {
  if (numbers.length < octets || !numbers.slice(0, octets).every((label) => OCTET.test(label))) return false;
  const network = ipv4Range(`${[...numbers.slice(0, octets), '0', '0', '0'].slice(0, 4).join('.')}/${octets * 8}`);
  return network !== undefined && containsRange(range, network);
}

/** The domains that hold nothing but addresses of the range: 128 at most. */
function reverseApexes(vipRange: string): readonly DomainName[] {
  const range = ipv4Range(vipRange);
  if (range === undefined) return [];
  const octets = Math.ceil(range.prefixLength / 8);
  const step = 2 ** (32 - octets * 8);
  const first = ipv4ToNumber(range.network) ?? 0;
  return Array.from({ length: 2 ** (octets * 8 - range.prefixLength) }, (_, index) =>
    reverseOf(numberToIpv4(first + index * step)).slice(4 - octets),
  );
}

function keysOf(name: DomainName): readonly string[] {
  return name.map((label) => nameKey([label]).slice(0, -1));
}

function serviceRecord(owner: DomainName, { name, port, protocol }: ServicePort): ResourceRecord {
  return record([`_${name}`, `_${protocol}`, ...owner], types.SRV, serviceData(port, owner));
}

function addressRecord(owner: DomainName, address: IpAddress): ResourceRecord {
  return record(owner, isIpv6(address) ? types.AAAA : types.A, addressData(address));
}

function record(name: DomainName, type: number, data: ResourceRecord['data']): ResourceRecord {
  return { name, type, class: classes.IN, ttl: ZONE_TTL, data };
}
