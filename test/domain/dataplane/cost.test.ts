import { expect, test } from 'vitest';
import { L4Compiler } from '../../../src/domain/dataplane/compile.js';
import type { Resource } from '../../../src/domain/resource/model.js';
import { endpoints, SmallCluster, service, serviceRef } from '../../support/small-cluster.js';

const ROUNDS = 300;

/** A cluster of that many services, and a function that changes one: planned, committed, folded, compiled. */
function changing(size: number): (round: number) => void {
  const cluster = new SmallCluster();
  const compiler = new L4Compiler('here' as never);
  const commit = ({ touched }: ReturnType<SmallCluster['apply']>) => compiler.update(cluster.state, touched?.services ?? []);
  const named = (index: number, spec: object = {}): Resource =>
    service(`s${index}`, { endpoints: [{ address: '10.0.0.1', port: (index % 60_000) + 1 }], ...spec });
  commit(cluster.apply(Array.from({ length: size }, (_, index) => named(index))));
  return (round) => {
    commit(cluster.apply([named(round % size, { drain: { timeout: `${round % 50}s` } })]));
    commit(cluster.apply([endpoints('e', `s${round % size}`, { address: '10.0.0.2' })]));
    commit(cluster.apply([service('new')]));
    commit(cluster.delete(serviceRef('new')));
  };
}

/** The fastest of several blocks: what else the machine does only ever adds. */
function fastestBlockMs(change: (round: number) => void): number {
  let fastest = Number.POSITIVE_INFINITY;
  for (let block = 0; block < 10; block++) {
    const start = performance.now();
    for (let round = 0; round < ROUNDS / 10; round++) change(block * (ROUNDS / 10) + round);
    fastest = Math.min(fastest, performance.now() - start);
  }
  return fastest;
}

// A pass over 10,000 is some hundred times what a change costs.
test('a change of one service costs the same among 10,000 as among 10', { timeout: 30_000 }, () => {
  const few = changing(10);
  const many = changing(10_000);
  fastestBlockMs(few);
  fastestBlockMs(many);
  expect(fastestBlockMs(many)).toBeLessThan(5 * fastestBlockMs(few));
});
