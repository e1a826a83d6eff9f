import { type VipRange, vipRange } from '../../src/domain/dataplane/vip.js';
import type { Change, Entry } from '../../src/domain/log/model.js';
import { type Resource, type ResourceRef, source } from '../../src/domain/resource/model.js';
import { planApply, planDelete, type ResourcePlan } from '../../src/domain/resource/plan.js';
import { decodeResource } from '../../src/domain/resource/schema.js';
import { ClusterState, type Touched } from '../../src/domain/resource/state.js';
import { SmallLog } from './small-log.js';

/** A document as a resource. @throws Error with its problems */
export function resource(kind: 'Service' | 'Endpoints', name: string, spec: object, metadata: object = {}): Resource {
  const decoded = decodeResource({ apiVersion: 'holdfast/v1', kind, metadata: { name, ...metadata }, spec });
  if ('problems' in decoded) throw new Error(JSON.stringify(decoded.problems));
  return decoded.resource;
}

export function service(name: string, spec: object = {}, metadata: object = {}): Resource {
  return resource('Service', name, { ports: [{ name: 'http', port: 80 }], ...spec }, metadata);
}

export function endpoints(name: string, ofService: string, ...list: readonly object[]): Resource {
  return resource('Endpoints', name, { service: ofService, endpoints: list });
}

export function serviceRef(name: string): ResourceRef {
  return { kind: 'Service', namespace: 'default', name };
}

/** Plans, proposes and folds in one step, at a time that tests set. */
export class SmallCluster {
  readonly log = new SmallLog();
  readonly state = new ClusterState();
  readonly range: VipRange;
  now = 1_000_000;

  constructor(cidr = '10.192.0.0/16') {
    this.range = vipRange(cidr);
    this.state.replace(this.log.snapshot());
  }

  get context() {
    return { state: this.state, range: this.range, now: this.now };
  }

  plan(resources: readonly Resource[], { by = 'test', prune = false } = {}): ReturnType<typeof planApply> {
    return planApply({ resources, source: source(by), prune }, this.context);
  }

  /** @throws Error with the problems of the plan */
  apply(resources: readonly Resource[], options: { readonly by?: string; readonly prune?: boolean } = {}): Committed {
    const plan = this.plan(resources, options);
    if ('problems' in plan) throw new Error(JSON.stringify(plan.problems));
    return this.commit(plan);
  }

  delete(...refs: readonly ResourceRef[]): Committed {
    return this.commit(planDelete(refs, this.context));
  }

  commit(plan: ResourcePlan): Committed {
    const entry = this.log.propose(plan, this.now);
    return { plan, entry, touched: entry && this.state.fold(entry) };
  }

  /** An entry that no plan of ours makes. */
  write(...changes: readonly Change[]): Touched | undefined {
    const entry = this.log.propose({ changes }, this.now);
    return entry && this.state.fold(entry);
  }
}

export interface Committed {
  readonly plan: ResourcePlan;
  readonly entry: Entry | undefined;
  readonly touched: Touched | undefined;
}
