import { describe, expect, test } from 'vitest';
import { formatHealthRecord, healthKey } from '../../../src/domain/dataplane/health.js';
import { healthTargets, planHealth } from '../../../src/domain/dataplane/health-targets.js';
import type { NodeName } from '../../../src/domain/identity/model.js';
import { canonicalJson } from '../../../src/domain/kernel/canonical-json.js';
import { type Change, logKey } from '../../../src/domain/log/model.js';
import { NodeObjects } from '../../../src/domain/log/node-objects.js';
import { MOST_OBJECT_BYTES, NodeWrites, nodeSource, tooLarge } from '../../../src/domain/log/node-writes.js';
import { formatNodeInfo, nodeInfoKey } from '../../../src/domain/node/model.js';
import { qualifiedName } from '../../../src/domain/resource/model.js';
import { endpoints, SmallCluster, service } from '../../support/small-cluster.js';

const web1 = 'web-1' as NodeName;
const web = 'web' as NodeName;
const a = qualifiedName('default', 'a');

const published = (
  name: string,
  node: NodeName,
  list: readonly object[] = [{ address: '10.0.0.1', node }],
  by = nodeSource(node),
): Change => ({
  key: logKey(`endpoints/default/${name}`),
  value: canonicalJson({ ...endpoints(name, 'a', ...list), source: by }),
});
const verdict = (target: string, node: NodeName, reason = ''): Change => ({
  key: healthKey(a, target),
  value: formatHealthRecord({ healthy: reason === '', reason, since: 5, node }),
});

const record = (node: NodeName) => ({
  key: nodeInfoKey(node),
  value: formatNodeInfo({
    ...{ hostname: 'h', architecture: 'x64', addresses: ['10.0.0.1'], cpu: { count: 2 }, versions: {}, version: '1' },
    ...{ labels: {}, subsystems: { link: 'ready' } },
  }),
});

function cluster(): SmallCluster {
  const made = new SmallCluster();
  const hosted = [
    { address: '10.0.0.1', port: 80, node: 'web-1' },
    { address: '10.0.0.2', port: 80, node: 'web' },
    { address: '10.0.0.3', port: 80 },
  ];
  made.apply([service('a', { endpoints: hosted, health: { tcp: {} } }), endpoints('by-hand', 'a', { address: '10.0.0.9' })]);
  made.write(published('web', web), verdict('10.0.0.2:80', web, 'no answer'));
  return made;
}

describe('E17: what a node may write', () => {
  const plain = published('web-1', web1);
  test.each<{ name: string; node?: NodeName; change: Change; refused: RegExp | undefined }>([
    { name: 'Endpoints of its name', change: plain, refused: undefined },
    { name: 'Endpoints that begin with its name', change: published('web-1-http', web1), refused: undefined },
    { name: 'under another name', change: published('other', web1), refused: /does not begin with web-1/ },
    { name: 'under a name that only begins alike', change: published('web-10', web1), refused: /does not begin with web-1/ },
    { name: 'of another source', change: published('web-1', web1, undefined, nodeSource(web)), refused: /of source node:web-1/ },
    {
      name: 'with an endpoint of another node',
      change: published('web-1', web1, [{ address: '10.0.0.1', node: 'web' }]),
      refused: /not one of the node web-1/,
    },
    {
      name: 'with an endpoint of no node',
      change: published('web-1', web1, [{ address: '10.0.0.1' }]),
      refused: /not one of the node web-1/,
    },
    { name: 'no JSON', change: { ...plain, value: '{' }, refused: /holds no object/ },
    { name: 'a number', change: { ...plain, value: '7' }, refused: /holds no object/ },
    { name: 'an invalid object', change: { ...plain, value: '{"kind":"Endpoints"}' }, refused: /is invalid/ },
    { name: 'another object', change: { ...plain, key: logKey('endpoints/default/web-1-x') }, refused: /holds another object/ },
    { name: 'in another form', change: { ...plain, value: ` ${plain.value}` }, refused: /not in canonical form/ },
    { name: 'what it did not publish, though the name fits', node: web, change: published('web-1', web), refused: undefined },
    {
      name: 'what another one has published',
      node: web1,
      change: { key: logKey('endpoints/default/web'), value: null },
      refused: /does not begin with web-1/,
    },
    { name: 'its own removed', node: web, change: { key: logKey('endpoints/default/web'), value: null }, refused: undefined },
    {
      name: 'what an operator applied',
      node: 'by' as NodeName,
      change: { key: logKey('endpoints/default/by-hand'), value: null },
      refused: /belongs to test/,
    },
    { name: 'health of an endpoint that it hosts', change: verdict('10.0.0.1:80', web1), refused: undefined },
    { name: 'of one that another hosts', change: verdict('10.0.0.2:80', web1), refused: /not an endpoint that web-1 checks/ },
    { name: 'of one that nobody hosts', change: verdict('10.0.0.3:80', web1), refused: /not an endpoint that web-1 checks/ },
    { name: 'of one that is not there', change: verdict('10.0.0.7:80', web1), refused: /not an endpoint that web-1 checks/ },
    { name: 'in the name of another', change: verdict('10.0.0.1:80', web), refused: /no verdict of the node web-1/ },
    { name: 'no verdict', change: { ...verdict('10.0.0.1:80', web1), value: '{"healthy":1}' }, refused: /no verdict/ },
    {
      name: "another's verdict removed",
      change: { ...verdict('10.0.0.2:80', web), value: null },
      refused: /was written by the node web/,
    },
    { name: 'its own verdict removed', node: web, change: { ...verdict('10.0.0.2:80', web), value: null }, refused: undefined },
    { name: 'a verdict removed that is not there', change: { ...verdict('10.0.0.1:80', web1), value: null }, refused: undefined },
    { name: 'a Service', change: { key: logKey('service/default/web-1'), value: null }, refused: /nodes do not write service/ },
    { name: 'an address', change: { key: logKey('vip/10.192.0.9'), value: '{}' }, refused: /nodes do not write vip/ },
    {
      name: 'a setting',
      change: { key: logKey('settings/vip-range'), value: '"10.0.0.0/8"' },
      refused: /nodes do not write settings/,
    },
    {
      name: 'a key that only looks like Endpoints',
      change: { key: logKey('endpoints/default/x/web-1'), value: plain.value },
      refused: /holds another object/,
    },
    { name: 'its own record', change: record(web1), refused: undefined },
    { name: 'the record of another node', change: record(web), refused: /nodes do not write node.web/ },
    { name: 'no record any more', change: { ...record(web1), value: null }, refused: undefined },
    {
      name: 'a record that is none',
      change: { ...record(web1), value: '{"hostname":1}' },
      refused: /^node.web-1: hostname: /,
    },
    {
      name: 'a record in another form',
      change: { ...record(web1), value: ` ${record(web1).value}` },
      refused: /^node.web-1: it is not in canonical form/,
    },
  ])('$name', ({ node = web1, change, refused }) => {
    const reason = new NodeWrites(cluster().state, node).refuse(change);
    if (refused === undefined) expect(reason).toBeUndefined();
    else expect(reason).toMatch(refused);
  });

  test('whatever the health checks of a node want to write, it may', () => {
    const { state } = cluster();
    for (const nodeId of [web, web1]) {
      const host = { nodeId, alone: false };
      const keys = [...healthTargets(state, a, host).map(({ key }) => key), healthKey(a, '10.0.0.2:80')];
      for (const wanted of [{ healthy: false, reason: 'no answer', since: 9 }, 'gone'] as const) {
        const hosted = wanted === 'gone' ? keys : keys.slice(0, -1);
        const { changes } = planHealth(
          state,
          hosted.map((key) => [key, wanted] as const),
          host,
        );
        const writes = new NodeWrites(state, nodeId);
        expect(changes.map((change) => writes.refuse(change))).toEqual(changes.map(() => undefined));
      }
    }
  });

  test('a judgement is of what stands at the key', () => {
    const { state } = cluster();
    const writes = new NodeWrites(state, web);
    const at = state.revision;
    expect(writes.judgedAt(logKey('endpoints/default/web'))).toBe(at);
    expect(writes.judgedAt(healthKey(a, '10.0.0.2:80'))).toBe(at);
    expect(writes.judgedAt(healthKey(a, '10.0.0.1:80'))).toBe(0n);
    expect(writes.judgedAt(logKey('endpoints/default/none'))).toBe(0n);
    expect(writes.judgedAt(logKey('endpoints/default/x/y'))).toBe(0n);
  });

  test('256 KiB an object, counted as UTF-8', () => {
    const key = logKey('endpoints/default/web-1');
    expect(tooLarge({ key, value: 'x'.repeat(MOST_OBJECT_BYTES) })).toBeUndefined();
    expect(tooLarge({ key, value: 'ä'.repeat(MOST_OBJECT_BYTES / 2 + 1) })).toMatch(/262146 bytes, at most 262144/);
    expect(tooLarge({ key, value: null })).toBeUndefined();
  });
});

describe('what a node has', () => {
  test('is counted by who wrote it, from the start as by following', () => {
    const made = cluster();
    const objects = new NodeObjects(made.state);
    expect([objects.count(web), objects.count(web1)]).toEqual([2, 0]);
    const follow = (...changes: Change[]) => {
      const touched = made.write(...changes);
      if (touched !== undefined) objects.follow(made.state, touched);
      expect(new NodeObjects(made.state)).toEqual(objects);
    };
    follow(published('web-1', web1), verdict('10.0.0.1:80', web1));
    expect(objects.count(web1)).toBe(2);
    follow(verdict('10.0.0.2:80', web1, 'moved'));
    expect([objects.count(web), objects.count(web1)]).toEqual([1, 3]);
    follow({ key: logKey('endpoints/default/web-1'), value: null }, { ...verdict('10.0.0.1:80', web1), value: null });
    expect(objects.count(web1)).toBe(1);
  });

  test('after changes: what is there already counts once', () => {
    const objects = new NodeObjects(cluster().state);
    expect(objects.countAfter(web, [published('web', web), published('web-2', web)])).toBe(3);
    expect(objects.countAfter(web, [{ key: logKey('endpoints/default/web'), value: null }])).toBe(1);
    expect(objects.countAfter(web, [{ key: logKey('endpoints/default/none'), value: null }])).toBe(2);
  });
});
