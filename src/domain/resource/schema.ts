import { z } from 'zod';
import { pathProblems, protocolProblems, trafficShape } from '../dataplane/schema.js';
import { nodeName } from '../identity/model.js';
import { DNS_LABEL } from '../kernel/dns-label.js';
import { durationMs } from '../kernel/duration.js';
import { formatAddressPort, type IpAddress, ipAddress, ipv6Groups, type PortNumber } from '../kernel/network.js';
import { object, oneOf, port, SENTENCE, wholeNumber } from '../kernel/schema.js';
import { closest } from '../kernel/suggest.js';
import { API_VERSION, DEFAULT_NAMESPACE, KINDS, type Resource } from './model.js';
import { found, type Problem, problemsOf } from './problem.js';

/** Keys that the resource model has and this version does not enforce: refused by name rather than accepted and ignored. */
const PLANNED = {
  spec: ['networkPolicy', 'expose', 'selector', 'dataPath'],
  port: ['hostPort'],
  endpoint: ['health'],
};
const PLANNED_KINDS = ['Volume', 'StorageClass', 'VolumeSnapshot', 'Secret', 'LogSink', 'Node', 'Instance'];

const MAX_PORTS = 64;
const MAX_ENDPOINTS = 1_000;
const MAX_LABELS = 64;
/** A day: more is a typing error. */
const MAX_DRAIN_MS = 24 * 60 * 60 * 1000;

const A_LABEL = 'a DNS-1123 label: 1 to 63 of a-z, 0-9 and -, not at either end';
const dnsLabel = z.string('a name').regex(DNS_LABEL, A_LABEL);
const address = z.string('an IPv4 or IPv6 address').transform((text, context) => {
  const parsed = ipAddress(text);
  if (parsed !== undefined) return parsed;
  context.addIssue({ code: 'custom', message: 'an IPv4 or IPv6 address' });
  return z.NEVER;
});
const node = z.string('the name of a node').transform((text, context) => {
  const name = nodeName(text);
  if (name !== undefined) return name;
  context.addIssue({ code: 'custom', message: `the name of a node, ${A_LABEL}` });
  return z.NEVER;
});
const weight = wholeNumber(1, 100);
const drainTimeout = z.string('a duration such as 30s or 5m').refine((text) => {
  const ms = durationMs(text);
  return ms !== undefined && ms <= MAX_DRAIN_MS;
}, 'a duration such as 30s or 5m, at most 24h');

/**
 * A mapping whose keys are the user's. zod's record drops `__proto__` in silence and says of another bad key neither what is wrong
 * with it nor what was expected.
 */
function dictionary<Value extends z.ZodType>(what: string, keyPattern: RegExp, key: string, value: Value) {
  const isMapping = (input: unknown): input is Readonly<Record<string, unknown>> =>
    typeof input === 'object' && input !== null && !Array.isArray(input);
  return z.custom<Readonly<Record<string, unknown>>>(isMapping, what).transform((mapping, context) => {
    const entries: [string, z.output<Value>][] = [];
    for (const [name, member] of Object.entries(mapping)) {
      const parsed = value.safeParse(member);
      if (!keyPattern.test(name)) {
        context.addIssue({ code: 'custom', message: `expected ${key}, found ${found(name)}`, path: [name], params: SENTENCE });
      } else if (parsed.success) entries.push([name, parsed.data]);
      else for (const { message } of parsed.error.issues) context.addIssue({ code: 'custom', message, path: [name] });
    }
    return Object.fromEntries(entries);
  });
}

const labelValue = z
  .string('a string')
  .regex(/^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/, 'a label value: at most 63 of letters, digits, . _ -');
const labels = dictionary(
  'a mapping of labels',
  /^[A-Za-z0-9]([A-Za-z0-9._/-]{0,251}[A-Za-z0-9])?$/,
  'a label key: letters, digits, . _ / -',
  labelValue,
).superRefine((record, context) => {
  const count = Object.keys(record).length;
  if (count > MAX_LABELS)
    context.addIssue({ code: 'custom', message: `expected at most ${MAX_LABELS} labels, found ${count}`, params: SENTENCE });
});

const metadata = object({
  name: dnsLabel,
  namespace: dnsLabel.default(DEFAULT_NAMESPACE),
  labels: labels.default({}),
});

const servicePort = object(
  { name: dnsLabel.optional(), port, targetPort: port.optional(), protocol: oneOf('tcp', 'udp').default('tcp') },
  PLANNED.port,
).transform((value) => ({
  name: value.name ?? `${value.protocol}-${value.port}`,
  port: value.port,
  targetPort: value.targetPort ?? value.port,
  protocol: value.protocol,
}));

const portsByName = dictionary('a mapping of port names to port numbers', DNS_LABEL, A_LABEL, port).refine(
  (record) => Object.keys(record).length > 0,
  'at least one port name',
);

const endpointShape = {
  name: dnsLabel.optional(),
  address,
  port: port.optional(),
  ports: portsByName.optional(),
  weight: weight.default(1),
  node: node.optional(),
};
const oneOfPorts = ({ port, ports }: { port?: unknown; ports?: unknown }) => port === undefined || ports === undefined;
const ONE_OF_PORTS = { message: 'expected either port or ports, found both', path: ['ports'], params: SENTENCE };

interface Target {
  readonly address: IpAddress;
  readonly port?: PortNumber | undefined;
  readonly ports?: Readonly<Record<string, PortNumber>> | undefined;
}

/** DNS names are made of it, so it is a label: `ep-127-0-0-1-18081`. */
function named<E extends Target & { readonly name?: string | undefined }>(endpoint: E) {
  return { ...endpoint, name: endpoint.name ?? defaultName(endpoint) };
}

function defaultName({ address, port, ports }: Target): string {
  const host = `ep-${addressParts(address).join('-')}`;
  const own = port === undefined ? portsInOrder(ports).map(([, number]) => number) : [port];
  const name = [host, ...own].join('-');
  return DNS_LABEL.test(name) ? name : host;
}

/** All eight groups of an IPv6 address: with a gap two addresses would give one name, or a name that ends with `-`. */
function addressParts(address: IpAddress): readonly string[] {
  return ipv6Groups(address)?.map((group) => group.toString(16)) ?? address.split('.');
}

function portsInOrder(ports: Target['ports'] = {}): readonly (readonly [string, PortNumber])[] {
  return Object.entries(ports).sort(([a], [b]) => (a < b ? -1 : 1));
}

const endpoint = object(endpointShape, PLANNED.endpoint).refine(oneOfPorts, ONE_OF_PORTS).transform(named);
const published = object({ ...endpointShape, ready: z.boolean('true or false').default(true) }, PLANNED.endpoint)
  .refine(oneOfPorts, ONE_OF_PORTS)
  .transform(named);

/** Reports every element of which an earlier one says the same, in the first way in which it does. */
function unique<T>(list: string, ...descriptions: readonly ((value: T) => string)[]) {
  return (values: readonly T[], context: z.RefinementCtx) => {
    const first = new Map<string, number>();
    for (const [index, value] of values.entries()) {
      const texts = descriptions.map((describe) => describe(value));
      const again = texts.find((text) => first.has(text));
      if (again !== undefined) {
        const message = `${again} stands in ${list}[${first.get(again)}] already`;
        context.addIssue({ code: 'custom', message, path: [index], params: SENTENCE });
      }
      for (const text of texts) if (!first.has(text)) first.set(text, index);
    }
  };
}

const ports = z
  .array(servicePort, 'a list of ports')
  .min(1, 'at least one port')
  .max(MAX_PORTS, `at most ${MAX_PORTS} ports`)
  .superRefine(
    unique(
      'ports',
      ({ port, protocol }) => `port ${port}/${protocol}`,
      ({ name }) => `the port name ${name}`,
    ),
  );

const whereTo = ({ address, port, ports }: Target) => {
  if (port !== undefined) return `endpoint ${formatAddressPort(address, port)}`;
  const byName = portsInOrder(ports).map(([name, number]) => `${name} ${number}`);
  return [`endpoint ${address}`, ...byName].join(', ');
};
type NamedTarget = Target & { readonly name: string };
const endpointList = <E extends z.ZodType<NamedTarget>>(element: E) =>
  z
    .array(element, 'a list of endpoints')
    .max(MAX_ENDPOINTS, `at most ${MAX_ENDPOINTS} endpoints`)
    .superRefine(unique<NamedTarget>('endpoints', whereTo, ({ name }) => `the endpoint name ${name}`));

const serviceSpec = object(
  {
    ports,
    vip: address.optional(),
    ...trafficShape,
    drain: object({ timeout: drainTimeout.default('30s') }).default({ timeout: '30s' }),
    endpoints: endpointList(endpoint).default([]),
  },
  PLANNED.spec,
).superRefine((spec, context) => {
  for (const [index, value] of spec.endpoints.entries()) {
    for (const { path, message } of endpointPortProblems(value, spec.ports)) {
      context.addIssue({ code: 'custom', message, path: ['endpoints', index, ...path], params: SENTENCE });
    }
  }
  for (const { path, message } of [...protocolProblems(spec), ...pathProblems(spec)])
    context.addIssue({ code: 'custom', message, path, params: SENTENCE });
});

/** How an endpoint's own ports contradict the ports of its service; the messages are sentences. */
export function endpointPortProblems(
  endpoint: { readonly port?: number | undefined; readonly ports?: Readonly<Record<string, number>> | undefined },
  servicePorts: readonly { readonly name: string }[],
): readonly { readonly path: readonly string[]; readonly message: string }[] {
  const names = servicePorts.map(({ name }) => name);
  const known = names.join(', ');
  if (endpoint.port !== undefined && names.length > 1) {
    return [{ path: ['port'], message: `expected ports by name, since the service has several: ${known}` }];
  }
  return Object.keys(endpoint.ports ?? {})
    .filter((name) => !names.includes(name))
    .map((name) => ({ path: ['ports', name], message: `expected a port name of the service, ${known}, found ${found(name)}` }));
}

const endpointsSpec = object({ service: dnsLabel, endpoints: endpointList(published) });

const apiVersion = z.literal(API_VERSION, API_VERSION);
const schemas = {
  Service: object({ apiVersion, kind: z.literal('Service'), metadata, spec: serviceSpec }),
  Endpoints: object({ apiVersion, kind: z.literal('Endpoints'), metadata, spec: endpointsSpec }),
};

/** A value read from a manifest as a resource with its defaults, or everything that is wrong with it. */
export function decodeResource(value: unknown): { readonly resource: Resource } | { readonly problems: readonly Problem[] } {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { problems: problemsOf([{ path: [], message: 'a mapping with apiVersion, kind, metadata and spec' }], value) };
  }
  const kind = 'kind' in value ? value.kind : undefined;
  if (kind !== 'Service' && kind !== 'Endpoints') {
    return { problems: [{ path: 'kind', message: unknownKind(kind) }] };
  }
  const parsed = schemas[kind].safeParse(value);
  if (!parsed.success) return { problems: problemsOf(parsed.error.issues, value) };
  const { apiVersion: _, ...resource } = parsed.data;
  return { resource };
}

function unknownKind(kind: unknown): string {
  const problem = `expected ${KINDS.join(' or ')}, found ${found(kind)}`;
  if (typeof kind !== 'string') return problem;
  if (PLANNED_KINDS.includes(kind)) return `${problem}, which is not built yet in this version`;
  const near = closest(kind, KINDS);
  return near === undefined ? problem : `${problem}; did you mean ${near}?`;
}
