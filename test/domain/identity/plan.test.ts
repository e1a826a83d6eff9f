import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isLabelKey, isLabelValue, nodeName } from '../../../src/domain/identity/model.js';
import { formatIdentity, identityDrift, mintIdentity, parseIdentity } from '../../../src/domain/identity/plan.js';

const randomBytes = Uint8Array.of(0, 1, 0xab, 0xff, 16, 32, 64, 128);

describe('mintIdentity', () => {
  test.each<{ name: string; explicitName?: string; hostname: string; nodeId: string }>([
    { name: 'the explicit name', explicitName: 'edge-7', hostname: 'host', nodeId: 'edge-7' },
    { name: 'the host name', hostname: 'worker-1', nodeId: 'worker-1' },
    { name: 'the first label of a dotted host name', hostname: 'worker-1.rack.example.com', nodeId: 'worker-1' },
    { name: 'chance, when the host name is empty', hostname: '', nodeId: 'node-0001abff10204080' },
    { name: 'chance, when it has capitals', hostname: 'Worker-1', nodeId: 'node-0001abff10204080' },
    { name: 'chance, when it has an underscore', hostname: 'worker_1', nodeId: 'node-0001abff10204080' },
    { name: 'chance, when its first label is empty', hostname: '.example.com', nodeId: 'node-0001abff10204080' },
    { name: 'chance, when it is too long', hostname: 'x'.repeat(64), nodeId: 'node-0001abff10204080' },
  ])('$name', ({ explicitName, hostname, nodeId }) => {
    const labels = { zone: 'a' };
    expect(mintIdentity({ explicitName, hostname, labels, randomBytes })).toEqual({ nodeId, hostname, labels });
  });

  test.each(['', 'A', 'a.b', '-a', 'a-', 'a_b', 'x'.repeat(64), 'a\n'])(
    'an explicit %j is an error, not replaced',
    (explicitName) => {
      expect(() => mintIdentity({ explicitName, hostname: 'host', labels: {}, randomBytes })).toThrow(
        expect.objectContaining({
          code: 'identity.invalid_name',
          message: `identity.invalid_name: ${JSON.stringify(explicitName)} is no node name`,
        }),
      );
    },
  );

  test('too little chance is a mistake of the caller', () => {
    expect(() => mintIdentity({ hostname: '', labels: {}, randomBytes: new Uint8Array(7) })).toThrow(RangeError);
  });
});

describe('parseIdentity', () => {
  test('a file, with keys that a newer version wrote', () => {
    const text = '{"node_id":"a","hostname":"Host.example","labels":{"zone":"a"},"rank":3}';
    expect(parseIdentity(text, 'f')).toEqual({ nodeId: 'a', hostname: 'Host.example', labels: { zone: 'a' } });
  });

  test.each<{ name: string; text: string; problem: string }>([
    { name: 'empty', text: '', problem: 'f is empty' },
    { name: 'white', text: ' \n', problem: 'f is empty' },
    { name: 'zeros after a crash', text: '\0\0\0', problem: 'f is not JSON' },
    { name: 'cut off', text: '{"node_id":"a"', problem: 'f is not JSON' },
    { name: 'a list', text: '[]', problem: 'f is not a JSON object' },
    { name: 'null', text: 'null', problem: 'f is not a JSON object' },
    { name: 'no node_id', text: '{"hostname":"h","labels":{}}', problem: 'f has no node_id' },
    { name: 'an empty node_id', text: '{"node_id":"","hostname":"h","labels":{}}', problem: 'f has no node_id' },
    { name: 'a node_id that is a number', text: '{"node_id":7,"hostname":"h","labels":{}}', problem: 'f has no node_id' },
    {
      name: 'a node_id that is no label',
      text: '{"node_id":"A b","hostname":"h","labels":{}}',
      problem: 'f has a node_id that is no DNS-1123 label: "A b"',
    },
    { name: 'no hostname', text: '{"node_id":"a","labels":{}}', problem: 'f has no hostname' },
    { name: 'no labels', text: '{"node_id":"a","hostname":"h"}', problem: 'f has no labels, or some that are no labels' },
    {
      name: 'a label that is a number',
      text: '{"node_id":"a","hostname":"h","labels":{"zone":1}}',
      problem: 'f has no labels, or some that are no labels',
    },
  ])('$name', ({ text, problem }) => {
    expect(() => parseIdentity(text, 'f')).toThrow(expect.objectContaining({ code: 'identity.malformed', facts: { problem } }));
  });

  test('law: what is formatted is parsed back', () => {
    const word = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?$/);
    fc.assert(
      fc.property(word, fc.string(), fc.dictionary(word, word), (explicitName, hostname, labels) => {
        const identity = mintIdentity({ explicitName, hostname, labels: { ...labels }, randomBytes });
        expect(parseIdentity(formatIdentity(identity), 'f')).toEqual(identity);
      }),
    );
  });
});

describe('identityDrift', () => {
  const identity = mintIdentity({ explicitName: 'a', hostname: 'h', labels: { zone: 'a', rack: '1' }, randomBytes });
  const b = nodeName('b');

  test('nothing when the configuration asks for what there is, or for less', () => {
    expect(identityDrift(identity, { nodeName: identity.nodeId, labels: { zone: 'a' } })).toEqual([]);
    expect(identityDrift(identity, { labels: {} })).toEqual([]);
  });

  test('names what stays as it is', () => {
    expect(
      identityDrift(identity, { ...(b === undefined ? {} : { nodeName: b }), labels: { zone: 'b', new: 'x', rack: '1' } }),
    ).toEqual([
      'nodeName is b, but this node was made as a and stays it',
      'labels that this node was not made with are not used: new, zone',
    ]);
  });
});

describe('labels', () => {
  test.each<{ text: string; key: boolean; value: boolean }>([
    { text: 'zone', key: true, value: true },
    { text: '', key: false, value: true },
    { text: 'A.b_c-1', key: true, value: true },
    { text: 'topology.kubernetes.io/zone', key: true, value: false },
    { text: 'a/b/c', key: false, value: false },
    { text: '/b', key: false, value: false },
    { text: 'a/', key: false, value: false },
    { text: 'A.B/c', key: false, value: false },
    { text: `${'a.'.repeat(127)}a/b`, key: false, value: false },
    { text: '-a', key: false, value: false },
    { text: 'a b', key: false, value: false },
    { text: 'x'.repeat(63), key: true, value: true },
    { text: 'x'.repeat(64), key: false, value: false },
  ])('$text', ({ text, key, value }) => {
    expect({ key: isLabelKey(text), value: isLabelValue(text) }).toEqual({ key, value });
  });
});
