import { describe, expect, test } from 'vitest';
import { BoundNodeNames } from '../../../src/app/log/bound-node-names.js';
import { nodeKey } from '../../../src/domain/certificate/records.js';
import type { NodeName } from '../../../src/domain/identity/model.js';
import { nid as asNid } from '../../../src/domain/link/model.js';
import type { Condition, ControlStore, StoredValue, Write } from '../../../src/ports/store/control-store.js';
import { peer } from '../../support/peer.js';

const options = { signal: new AbortController().signal };
const [web, db] = ['web' as NodeName, 'db' as NodeName];

/** What these tests need of a store; `between` runs before the next commit. */
class SmallStore implements ControlStore {
  readonly values = new Map<string, StoredValue>();

  /** The nodes are registered. */
  constructor(...nids: readonly string[]) {
    for (const nid of nids) this.values.set(nodeKey(asNid(nid)), { key: nodeKey(asNid(nid)), value: '{}', version: 1n });
  }

  between: (() => Promise<unknown>) | undefined;
  #version = 0n;

  async get(key: string): Promise<StoredValue | undefined> {
    return this.values.get(key);
  }

  async list(): Promise<readonly StoredValue[]> {
    return [...this.values.values()];
  }

  async commit(conditions: readonly Condition[], writes: readonly Write[]): Promise<bigint | undefined> {
    const between = this.between;
    this.between = undefined;
    await between?.();
    if (conditions.some(({ key, version }) => (this.values.get(key)?.version ?? 0n) !== version)) return undefined;
    this.#version += 1n;
    for (const { key, value } of writes) {
      if (value === null) this.values.delete(key);
      else this.values.set(key, { key, value, version: this.#version });
    }
    return this.#version;
  }

  async *watch(): AsyncIterable<never> {}
}

describe('B4: one name, one node', () => {
  test('a name is bound once and holds, for other replicas and after a restart as well', async () => {
    const store = new SmallStore();
    const names = new BoundNodeNames(store);
    expect(names.nameOf(peer('n1'))).toBeUndefined();
    await names.bind(peer('n1'), web, options);
    await names.bind(peer('n1'), web, options);
    expect(names.nameOf(peer('n1'))).toBe('web');
    const other = new BoundNodeNames(store);
    expect(other.nameOf(peer('n1'))).toBeUndefined();
    await other.bind(peer('n1'), web, options);
    expect(other.nameOf(peer('n1'))).toBe('web');
    expect(store.values.size).toBe(2);
  });

  test.each<[string, string, NodeName, RegExp]>([
    ['a node that says another name later', 'n1', db, /the node n1 is web, not db/],
    ['another node that says the same name', 'n2', web, /DUPLICATE_NODE: web is the node n1/],
  ])('%s is refused, by whoever bound it first and by others', async (_, nid, name, problem) => {
    const store = new SmallStore('n1', 'n2');
    const names = new BoundNodeNames(store);
    await names.bind(peer('n1'), web, options);
    for (const each of [names, new BoundNodeNames(store)]) {
      await expect(each.bind(peer(nid), name, options)).rejects.toMatchObject({
        code: 'log.denied',
        message: expect.stringMatching(problem),
      });
    }
    expect(names.nameOf(peer('n2'))).toBeUndefined();
  });

  test('a machine in the place of another one is told which name it has to have', async () => {
    const names = new BoundNodeNames(new SmallStore('n1'));
    await names.bind(peer('n1'), web, options);
    const remedy = 'remove the node-identity.json of this machine and start its agent with nodeName web';
    await expect(names.bind(peer('n1'), db, options)).rejects.toMatchObject({ code: 'log.denied', remedy });
  });

  test('the name of a node that was removed is free', async () => {
    const store = new SmallStore('n1', 'n2');
    const names = new BoundNodeNames(store);
    await names.bind(peer('n1'), web, options);
    store.values.delete(nodeKey(asNid('n1')));
    await names.bind(peer('n2'), web, options);
    expect(names.nameOf(peer('n2'))).toBe('web');
  });

  test('two at the same moment: one has it', async () => {
    const store = new SmallStore('n1', 'n2');
    const [first, second] = [new BoundNodeNames(store), new BoundNodeNames(store)];
    store.between = () => second.bind(peer('n2'), web, options);
    await expect(first.bind(peer('n1'), web, options)).rejects.toMatchObject({ code: 'log.denied' });
    expect([first.nameOf(peer('n1')), second.nameOf(peer('n2'))]).toEqual([undefined, 'web']);
  });
});
