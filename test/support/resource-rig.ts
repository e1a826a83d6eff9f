import { LogConsumer } from '../../src/app/log/log-consumer.js';
import { ResourceService } from '../../src/app/resource/resource-service.js';
import { vipRange } from '../../src/domain/dataplane/vip.js';
import type { ResourceRef } from '../../src/domain/resource/model.js';
import type { ApplyCall, ManifestDocument } from '../../src/ports/driving/resources.js';
import { FakeClock } from '../fakes/fake-clock.js';
import { FakeListenerStatus } from '../fakes/fake-listener-status.js';
import { FakeLogger } from '../fakes/fake-logger.js';
import { FakeOrderedLog } from '../fakes/fake-ordered-log.js';

export const options = { signal: new AbortController().signal };

export interface RigOptions {
  readonly clock?: FakeClock;
  readonly log?: FakeOrderedLog;
  readonly following?: boolean;
}

/** The control plane's use cases on a log in memory, with a view that follows it. */
export async function resourceRig({
  clock = new FakeClock(),
  log = new FakeOrderedLog({ clock }),
  following = true,
}: RigOptions = {}) {
  const logger = new FakeLogger();
  const view = new LogConsumer(log, clock, logger);
  const listeners = new FakeListenerStatus();
  const make = () => new ResourceService({ log, view, listeners, clock, vipRange: vipRange('10.192.0.0/16') });
  if (following) await view.start();
  await clock.advance(0);
  return { clock, log, logger, view, listeners, resources: make(), make };
}

export function documents(...values: readonly unknown[]): readonly ManifestDocument[] {
  return values.map((value, index) => ({ file: 'hello.yaml', number: index + 1, value }));
}

export function serviceDocument(name: string, spec: object = {}, labels: Readonly<Record<string, string>> = {}) {
  const metadata = { name, labels };
  return { apiVersion: 'holdfast/v1', kind: 'Service', metadata, spec: { ports: [{ name: 'http', port: 80 }], ...spec } };
}

export function endpointsDocument(name: string, service: string, endpoints: readonly object[]) {
  return { apiVersion: 'holdfast/v1', kind: 'Endpoints', metadata: { name }, spec: { service, endpoints } };
}

export function applyCall(values: readonly unknown[], call: Partial<ApplyCall> = {}): ApplyCall {
  return { documents: documents(...values), source: 'test', prune: false, dryRun: false, ...call };
}

export function ref(name: string, kind: ResourceRef['kind'] = 'Service'): ResourceRef {
  return { kind, namespace: 'default', name };
}

/** The first `count` items, or fewer when it ends before. */
export async function take<T>(iterator: AsyncIterator<T>, count: number): Promise<readonly T[]> {
  const items: T[] = [];
  while (items.length < count) {
    const next = await iterator.next();
    if (next.done === true) break;
    items.push(next.value);
  }
  return items;
}
