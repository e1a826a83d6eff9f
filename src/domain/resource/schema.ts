import { z } from 'zod';
import { durationMs } from '../kernel/duration.js';
import { ipAddress, type PortNumber } from '../kernel/network.js';
import { closest } from '../kernel/suggest.js';
import { API_VERSION, DEFAULT_NAMESPACE, KINDS, type Resource } from './model.js';
import { type Problem, problemsOf } from './problem.js';

/** Keys that the resource model has and this version does not enforce: refused by name rather than accepted and ignored. */
const PLANNED = {
  spec: [
    'health',
    'networkPolicy',
    'expose',
    'selector',
    'affinity',
    'onStale',
    'dataPath',
    'limits',
    'proxyProtocol',
    'idleTimeout',
  ],
  port: ['hostPort'],
  balance: ['locality'],
  endpoint: ['node', 'health'],
};
const PLANNED_KINDS = ['Volume', 'StorageClass', 'VolumeSnapshot', 'Secret', 'LogSink', 'Node', 'Instance'];
const PLANNED_ALGORITHMS = ['least-connections', 'source-hash'];

const MAX_PORTS = 64;
const MAX_ENDPOINTS = 1_000;
const MAX_LABELS = 64;
/** A day: more is a typing error. */
const MAX_DRAIN_MS = 24 * 60 * 60 * 1000;

/** An object whose unknown keys are errors with a suggestion, or named as not built yet. */
function object<Shape extends z.ZodRawShape>(shape: Shape, planned: readonly string[] = []) {
  const known = Object.keys(shape);
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return 'a mapping';
      return JSON.stringify((issue.keys as string[]).map((key) => unknownKey(key, known, planned)));
    },
  });
}

function unknownKey(key: string, known: readonly string[], planned: readonly string[]): readonly [string, string] {
  if (planned.includes(key)) return [key, 'this key is not built yet in this version; remove it'];
  const near = closest(key, known);
  const hint = near === undefined ? `; the keys here are ${known.join(', ')}` : `; did you mean ${near}?`;
  return [key, `unknown key${hint}`];
}

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const dnsLabel = z.string('a name').regex(LABEL, 'a DNS-1123 label: 1 to 63 of a-z, 0-9 and -, not at either end');
const port = z
  .number('a port number, 1 to 65535')
  .refine((value) => Number.isInteger(value) && value >= 1 && value <= 65_535, 'a port number, 1 to 65535')
  .transform((value) => value as PortNumber);
const address = z.string('an IPv4 or IPv6 address').transform((text, context) => {
  const parsed = ipAddress(text);
  if (parsed !== undefined) return parsed;
  context.addIssue({ code: 'custom', message: 'an IPv4 or IPv6 address' });
  return z.NEVER;
});
const weight = z
  .number('a whole number from 1 to 100')
  .refine((value) => Number.isInteger(value) && value >= 1 && value <= 100, 'a whole number from 1 to 100');
const drainTimeout = z.string('a duration such as 30s or 5m').refine((text) => {
  const ms = durationMs(text);
  return ms !== undefined && ms <= MAX_DRAIN_MS;
}, 'a duration such as 30s or 5m, at most 24h');

const labelKey = z.string().regex(/^[A-Za-z0-9]([A-Za-z0-9._/-]{0,251}[A-Za-z0-9])?$/, 'a label key: letters, digits, . _ / -');
const labelValue = z
  .string('a string')
  .regex(/^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/, 'a label value: at most 63 of letters, digits, . _ -');
const labels = z
  .record(labelKey, labelValue, 'a mapping of labels')
  .refine((record) => Object.keys(record).length <= MAX_LABELS, `at most ${MAX_LABELS} labels`);

const metadata = object({
  name: dnsLabel,
  namespace: dnsLabel.default(DEFAULT_NAMESPACE),
  labels: labels.default({}),
});

const protocol = z.literal('tcp', {
  error: ({ input }) => (input === 'udp' ? 'tcp (udp is not built yet in this version)' : 'tcp'),
});
const servicePort = object(
  { name: dnsLabel.optional(), port, targetPort: port.optional(), protocol: protocol.default('tcp') },
  PLANNED.port,
).transform((value) => ({
  name: value.name ?? `${value.protocol}-${value.port}`,
  port: value.port,
  targetPort: value.targetPort ?? value.port,
  protocol: value.protocol,
}));

const algorithm = z.enum(['random', 'round-robin'], {
  error: ({ input }) => {
    const known = 'random or round-robin';
    return PLANNED_ALGORITHMS.includes(String(input)) ? `${known} (${String(input)} is not built yet in this version)` : known;
  },
});

const endpointShape = {
  name: dnsLabel.optional(),
  address,
  port: port.optional(),
  ports: z.record(dnsLabel, port, 'a mapping of port names to port numbers').optional(),
  weight: weight.default(1),
};
const oneOfPorts = ({ port, ports }: { port?: unknown; ports?: unknown }) => port === undefined || ports === undefined;
const ONE_OF_PORTS = { message: 'either port or ports, not both', path: ['ports'] };

/** DNS names are made of it, so it is a label: `ep-127-0-0-1-18081`. */
function named<E extends { name?: string | undefined; address: string; port?: number | undefined }>(endpoint: E) {
  const suffix = endpoint.port === undefined ? '' : `-${endpoint.port}`;
  return { ...endpoint, name: endpoint.name ?? `ep-${endpoint.address.replaceAll(/[.:]+/g, '-').replace(/^-/, '')}${suffix}` };
}

const endpoint = object(endpointShape, PLANNED.endpoint).refine(oneOfPorts, ONE_OF_PORTS).transform(named);
const published = object({ ...endpointShape, ready: z.boolean('true or false').default(true) }, PLANNED.endpoint)
  .refine(oneOfPorts, ONE_OF_PORTS)
  .transform(named);

/** Reports every element whose `key` an earlier one has. */
function unique<T>(what: string, key: (value: T) => string) {
  return (values: readonly T[], context: z.RefinementCtx) => {
    const seen = new Set<string>();
    for (const [index, value] of values.entries()) {
      const text = key(value);
      if (seen.has(text))
        context.addIssue({ code: 'custom', message: `${what} used once; ${text} is there already`, path: [index] });
      seen.add(text);
    }
  };
}

const ports = z
  .array(servicePort, 'a list of ports')
  .min(1, 'at least one port')
  .max(MAX_PORTS, `at most ${MAX_PORTS} ports`)
  .superRefine(unique('a port name', (value) => value.name))
  .superRefine(unique('a port number', (value) => `${value.port}/${value.protocol}`));

type EndpointLike = { name: string; address: string; port?: number | undefined; ports?: Record<string, number> | undefined };
const whereTo = ({ address, port, ports }: EndpointLike) =>
  port === undefined && ports === undefined
    ? address
    : `${address}:${
        port ??
        Object.entries(ports ?? {})
          .sort()
          .join(';')
      }`;
const endpointList = <E extends z.ZodType<EndpointLike>>(element: E) =>
  z
    .array(element, 'a list of endpoints')
    .max(MAX_ENDPOINTS, `at most ${MAX_ENDPOINTS} endpoints`)
    .superRefine(unique('an endpoint name', (value) => value.name))
    .superRefine(unique('an endpoint', whereTo));

const serviceSpec = object(
  {
    ports,
    vip: address.optional(),
    balance: object({ algorithm: algorithm.default('random') }, PLANNED.balance).default({ algorithm: 'random' }),
    drain: object({ timeout: drainTimeout.default('30s') }).default({ timeout: '30s' }),
    endpoints: endpointList(endpoint).default([]),
  },
  PLANNED.spec,
).superRefine((spec, context) => {
  for (const [index, value] of spec.endpoints.entries()) {
    for (const { path, message } of endpointPortProblems(value, spec.ports)) {
      context.addIssue({ code: 'custom', message, path: ['endpoints', index, ...path] });
    }
  }
});

/** How an endpoint's own ports contradict the ports of its service. */
export function endpointPortProblems(
  endpoint: { readonly port?: number | undefined; readonly ports?: Readonly<Record<string, number>> | undefined },
  servicePorts: readonly { readonly name: string }[],
): readonly { readonly path: string[]; readonly message: string }[] {
  const names = servicePorts.map(({ name }) => name);
  if (endpoint.port !== undefined && names.length > 1) {
    return [{ path: ['port'], message: `ports by name, since the service has several: ${names.join(', ')}` }];
  }
  return Object.keys(endpoint.ports ?? {})
    .filter((name) => !names.includes(name))
    .map((name) => ({ path: ['ports', name], message: `a port name of the service: ${names.join(', ')}` }));
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
    return { problems: problemsOf([{ path: ['kind'], message: kindExpectation(kind) }], value) };
  }
  const parsed = schemas[kind].safeParse(value);
  if (!parsed.success) return { problems: problemsOf(parsed.error.issues, value) };
  const { apiVersion: _, ...resource } = parsed.data;
  return { resource };
}

function kindExpectation(kind: unknown): string {
  const known = KINDS.join(' or ');
  if (typeof kind !== 'string') return known;
  if (PLANNED_KINDS.includes(kind)) return `${known} (${kind} is not built yet in this version)`;
  const near = closest(kind, KINDS);
  return near === undefined ? known : `${known}; did you mean ${near}?`;
}
