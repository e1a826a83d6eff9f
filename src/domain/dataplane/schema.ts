import { z } from 'zod';
import { durationMs } from '../kernel/duration.js';
import { durationBetween, object, oneOf, port, SENTENCE, wholeNumber } from '../kernel/schema.js';
import { dataPathChoices, type PathFacts, proxyFeatures } from './data-path.js';
import type { Protocol } from './model.js';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const DAY = 24 * HOUR;
/** A machine has 65,535 ports for each endpoint; more than a million connections of one service are a typing error. */
const MAX_CONNECTIONS = 1_000_000;
const MAX_PATH = 1_024;

const balance = object({
  algorithm: oneOf('random', 'round-robin', 'least-connections', 'source-hash').default('random'),
  locality: oneOf('any', 'prefer-local', 'local-only').default('any'),
}).default({ algorithm: 'random', locality: 'any' });

const affinity = object({ clientIP: object({ timeout: durationBetween(SECOND, DAY).default('3h') }) });

const limits = object({ connections: wholeNumber(1, MAX_CONNECTIONS) });

const proxyProtocol = object({
  accept: z.boolean('true or false').default(false),
  send: oneOf('v1', 'v2').optional(),
}).refine(({ accept, send }) => accept || send !== undefined, {
  message: 'expected accept: true, or send: v1 or v2; leave proxyProtocol out for neither',
  params: SENTENCE,
});

const path = z
  .string('a path that begins with /')
  .max(MAX_PATH, `a path of at most ${MAX_PATH} characters`)
  .regex(/^\/[!-~]*$/, 'a path that begins with /, without spaces');
const host = z.string('a host name').regex(/^[A-Za-z0-9.:[\]_-]{1,253}$/, 'a host name');
const grpcService = z.string('a service name').regex(/^[A-Za-z0-9._/-]{0,253}$/, 'a service name such as my.package.Service');

/** Of one check, unless the interval is shorter. */
const TIMEOUT = '2s';

const CHECKS = ['tcp', 'http', 'grpc'] as const;
const ofPort = { port: port.optional() };

const health = object({
  tcp: object(ofPort).optional(),
  http: object({ path, ...ofPort, host: host.optional(), status: wholeNumber(100, 599).optional() }).optional(),
  grpc: object({ service: grpcService.default(''), ...ofPort }).optional(),
  interval: durationBetween(100, HOUR).default('10s'),
  timeout: durationBetween(10, 60 * SECOND).optional(),
  rise: wholeNumber(1, 100).default(2),
  fall: wholeNumber(1, 100).default(3),
})
  .superRefine((spec, context) => {
    const checks = CHECKS.filter((check) => spec[check] !== undefined);
    if (checks.length !== 1) {
      const message = `expected one of tcp, http and grpc, found ${checks.length === 0 ? 'none' : checks.join(' and ')}`;
      context.addIssue({ code: 'custom', message, params: SENTENCE });
    }
    if (spec.timeout !== undefined && longer(spec.timeout, spec.interval)) {
      const message = `expected at most the interval, ${spec.interval}, found "${spec.timeout}"`;
      context.addIssue({ code: 'custom', message, path: ['timeout'], params: SENTENCE });
    }
  })
  .transform((spec) => ({ ...spec, timeout: spec.timeout ?? (longer(TIMEOUT, spec.interval) ? spec.interval : TIMEOUT) }));

function longer(one: string, other: string): boolean {
  return (durationMs(one) ?? 0) > (durationMs(other) ?? 0);
}

/** The keys of a service's spec that say how its traffic is carried. */
export const trafficShape = {
  balance,
  affinity: affinity.optional(),
  limits: limits.optional(),
  proxyProtocol: proxyProtocol.optional(),
  idleTimeout: durationBetween(1, DAY).optional(),
  health: health.optional(),
  onStale: oneOf('serve', 'refuse').optional(),
  dataPath: oneOf(...dataPathChoices).optional(),
};

/** The kernel asked for together with what it cannot do; the message is a sentence. */
export function pathProblems(spec: PathFacts): readonly { path: string[]; message: string }[] {
  const features = spec.dataPath === 'kernel' ? proxyFeatures(spec) : [];
  if (features.length === 0) return [];
  return [
    { path: ['dataPath'], message: `the kernel cannot do ${features.join(' and ')}: expected auto or proxy, found "kernel"` },
  ];
}

interface Traffic {
  readonly ports: readonly { readonly protocol: Protocol }[];
  readonly proxyProtocol?: unknown;
  readonly health?: z.output<typeof health> | undefined;
}

/** Keys that say nothing to the protocols of the service's ports; the messages are sentences. */
export function protocolProblems({ ports, proxyProtocol, health }: Traffic): readonly { path: string[]; message: string }[] {
  if (ports.some(({ protocol }) => protocol === 'tcp')) return [];
  const checks = CHECKS.filter((check) => health?.[check] !== undefined && health[check]?.port === undefined);
  return [
    ...(proxyProtocol === undefined
      ? []
      : [{ path: ['proxyProtocol'], message: 'a PROXY header needs a tcp port, and this service has udp ports only' }]),
    ...checks.map((check) => ({
      path: ['health', check, 'port'],
      message: 'expected the tcp port that answers checks, since this service has udp ports only, found nothing',
    })),
  ];
}
