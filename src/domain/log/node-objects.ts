import { healthKey, healthOfKey } from '../dataplane/health.js';
import type { NodeName } from '../identity/model.js';
import { nodeName } from '../identity/model.js';
import { resourceKey, type Stored } from '../resource/model.js';
import type { ClusterState, Touched } from '../resource/state.js';
import type { Change, LogKey } from './model.js';

const NODE_SOURCE = 'node:';

/** What each node has written, so that it can be counted at the cost of a change. */
export class NodeObjects {
  readonly #writers = new Map<LogKey, NodeName>();
  readonly #counts = new Map<NodeName, number>();

  constructor(state: ClusterState) {
    for (const { resource } of state.all()) this.#note(keyOf(resource), writerOf(resource));
    for (const service of state.health.services()) {
      for (const [target, { node }] of state.health.of(service)) this.#note(healthKey(service, target), node);
    }
  }

  /** To be called with everything that `state` says of its changes. */
  follow(state: ClusterState, { changes, health }: Touched): void {
    for (const { ref, after } of changes) this.#note(resourceKey(ref), after && writerOf(after.resource));
    for (const key of health) {
      const place = healthOfKey(key);
      this.#note(key, place && state.health.get(place.service, place.target)?.node);
    }
  }

  count(node: NodeName): number {
    return this.#counts.get(node) ?? 0;
  }

  /** How many the node would have after the changes. */
  countAfter(node: NodeName, changes: readonly Change[]): number {
    return changes.reduce((count, { key, value }) => {
      const before = this.#writers.get(key) === node ? 1 : 0;
      return count - before + (value === null ? 0 : 1);
    }, this.count(node));
  }

  #note(key: LogKey, writer: NodeName | undefined): void {
    const before = this.#writers.get(key);
    if (before === writer) return;
    if (before !== undefined) this.#add(before, -1);
    if (writer === undefined) this.#writers.delete(key);
    else {
      this.#writers.set(key, writer);
      this.#add(writer, 1);
    }
  }

  #add(node: NodeName, step: number): void {
    const count = this.count(node) + step;
    if (count === 0) this.#counts.delete(node);
    else this.#counts.set(node, count);
  }
}

function keyOf(resource: Stored): LogKey {
  const { kind, metadata } = resource;
  return resourceKey({ kind, namespace: metadata.namespace, name: metadata.name });
}

function writerOf({ source }: Stored): NodeName | undefined {
  return source.startsWith(NODE_SOURCE) ? nodeName(source.slice(NODE_SOURCE.length)) : undefined;
}
