import { containsRange, type IpAddress, type Ipv4Range, ipv4Range, isIpv6 } from '../kernel/network.js';
import { type QualifiedName, qualifiedName, type ServicePort } from '../resource/model.js';
import type { ClusterState } from '../resource/state.js';
import { classes, type ResourceRecord, types } from './model.js';
import { type DomainName, nameKey, reverseOf } from './name.js';
import { addressData, nameData, serviceData, soaData, textData } from './records.js';

/** Names and numbers change with the services: nobody keeps an answer for longer, whether there is one or not. */
export const ZONE_TTL = 5;
const REFRESH = 3_600;
const RETRY = 600;
const EXPIRE = 86_400;

/** What there is at a name: records by type. A name with none stands above others that have some (RFC 4592, 2.2.2). */
interface Node {
  readonly records: Map<number, ResourceRecord[]>;
  /** Names right below it that are there. */
  children: number;
}

export type Found =
  /** Of the zone, and what it holds of the type; all of it for ANY. */
  | { readonly is: 'records'; readonly records: readonly ResourceRecord[] }
  /** The name is there, but nothing of that type. */
  | { readonly is: 'empty'; readonly soa: ResourceRecord }
  | { readonly is: 'absent'; readonly soa: ResourceRecord }
  /** Somebody else's name. */
  | { readonly is: 'foreign' };

/**
 * The names of services: `SERVICE.NAMESPACE.ORIGIN` has the service's address, `_PORT._PROTOCOL.` before it its ports (RFC 2782), the
 * reverse name of the address leads back. Kept as the state changes, at the cost of what changed.
 */
export class Zone {
  readonly #origin: DomainName;
  readonly #originKey: string;
  /** Where the addresses of services are: their reverse names are this zone's as well. */
  #vipRange: Ipv4Range | undefined;
  readonly #nodes = new Map<string, Node>();
  readonly #ofService = new Map<QualifiedName, readonly ResourceRecord[]>();
  #serial = 0;

  /**
   * @param origin `holdfast`; at least one label
   * @param server where this zone is answered: the origin's own address, as no service can have that name
   */
  constructor(origin: DomainName, server?: IpAddress) {
    this.#origin = origin;
    this.#originKey = nameKey(origin);
    this.#add(record(origin, types.NS, nameData(origin)));
    if (server !== undefined) this.#add(addressRecord(origin, server));
    this.#add(record(origin, types.TXT, textData('holdfast')));
  }

  get size(): number {
    return this.#nodes.size;
  }

  /** Services that have changed, or are gone. */
  update(state: ClusterState, services: Iterable<QualifiedName>): void {
    for (const service of services) {
      for (const former of this.#ofService.get(service) ?? []) this.#remove(former);
      const records = this.#recordsOf(state, service);
      for (const each of records) this.#add(each);
      if (records.length === 0) this.#ofService.delete(service);
      else this.#ofService.set(service, records);
    }
    this.#vipRange = state.vipRange === undefined ? undefined : ipv4Range(state.vipRange);
    // RFC 1982: it may only grow, modulo 2^32.
    this.#serial = Number(state.revision % 2n ** 32n);
  }

  /** @param type of a record, or ANY */
  find(name: DomainName, type: number): Found {
    const key = nameKey(name);
    const apex = this.#apexOf(name, key);
    if (apex === undefined) return { is: 'foreign' };
    const soa = this.#soa(apex);
    const isApex = key === nameKey(apex);
    const node = this.#nodes.get(key);
    if (node === undefined && !isApex) return { is: 'absent', soa };
    const own = isApex ? [soa] : [];
    const all = [...own, ...[...(node?.records.values() ?? [])].flat()];
    const records = type === types.ANY ? all : all.filter((each) => each.type === type);
    return records.length === 0 ? { is: 'empty', soa } : { is: 'records', records };
  }

  /** Which zone of ours a name is in: the origin's, or that of the reverse names that hold nothing but our addresses. */
  #apexOf(name: DomainName, key: string): DomainName | undefined {
    if (key === this.#originKey || key.endsWith(`.${this.#originKey}`)) return this.#origin;
    if (this.#vipRange === undefined || !key.endsWith('.in-addr.arpa.')) return undefined;
    const octets = Math.ceil(this.#vipRange.prefixLength / 8);
    const numbers = name.slice(0, -2).reverse();
    if (numbers.length < octets || !numbers.every((label) => /^(0|[1-9]\d{0,2})$/.test(label))) return undefined;
    const network = ipv4Range(`${[...numbers.slice(0, octets), '0', '0', '0'].slice(0, 4).join('.')}/${octets * 8}`);
    return network !== undefined && containsRange(this.#vipRange, network) ? name.slice(-2 - octets) : undefined;
  }

  #soa(apex: DomainName): ResourceRecord {
    const mailbox: DomainName = ['hostmaster', ...this.#origin];
    const numbers = [this.#serial, REFRESH, RETRY, EXPIRE, ZONE_TTL];
    return record(apex, types.SOA, soaData(this.#origin, mailbox, numbers));
  }

  #recordsOf(state: ClusterState, service: QualifiedName): readonly ResourceRecord[] {
    const resource = state.service(service)?.resource;
    const address = state.vips.ofService(service);
    if (resource === undefined || address === undefined || state.vips.get(address)?.releasedAt !== undefined) return [];
    const { name, namespace } = resource.metadata;
    const owner: DomainName = [name, namespace, ...this.#origin];
    return [
      addressRecord(owner, address),
      record(reverseOf(address), types.PTR, nameData(owner)),
      ...resource.spec.ports.map((port) => serviceRecord(owner, port)),
    ];
  }

  #add(added: ResourceRecord): void {
    const node = this.#reach(added.name);
    const records = node.records.get(added.type);
    if (records === undefined) node.records.set(added.type, [added]);
    else records.push(added);
  }

  #remove(removed: ResourceRecord): void {
    const node = this.#nodes.get(nameKey(removed.name));
    const left = node?.records.get(removed.type)?.filter((each) => each !== removed) ?? [];
    if (left.length === 0) node?.records.delete(removed.type);
    else node?.records.set(removed.type, left);
    this.#drop(removed.name);
  }

  /** The node of a name, with all that lead to it. */
  #reach(name: DomainName): Node {
    const key = nameKey(name);
    const known = this.#nodes.get(key);
    if (known !== undefined) return known;
    const node: Node = { records: new Map(), children: 0 };
    this.#nodes.set(key, node);
    if (name.length > 0) this.#reach(name.slice(1)).children += 1;
    return node;
  }

  /** Goes with the last record and the last name below it, and so do those above. */
  #drop(name: DomainName): void {
    const node = this.#nodes.get(nameKey(name));
    if (node === undefined || node.records.size > 0 || node.children > 0 || name.length === 0) return;
    this.#nodes.delete(nameKey(name));
    const above = this.#nodes.get(nameKey(name.slice(1)));
    if (above === undefined) return;
    above.children -= 1;
    this.#drop(name.slice(1));
  }
}

/** All services of a state, for a zone that is new. */
export function servicesOf(state: ClusterState): readonly QualifiedName[] {
  return [...state.all()].flatMap(({ resource: { kind, metadata } }) =>
    kind === 'Service' ? [qualifiedName(metadata.namespace, metadata.name)] : [],
  );
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
