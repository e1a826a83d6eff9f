import { expect, test } from 'vitest';
import { type CarriedSpec, choosePath, proxyOnlyKeys } from '../../../src/domain/dataplane/data-path.js';

const plain: CarriedSpec = { balance: { algorithm: 'random' } };

test.each<[string, CarriedSpec, readonly string[]]>([
  ['nothing', plain, []],
  ['source-hash', { balance: { algorithm: 'source-hash' } }, []],
  ['least-connections', { balance: { algorithm: 'least-connections' } }, ['balance.algorithm: least-connections']],
  ['round-robin', { balance: { algorithm: 'round-robin' } }, ['balance.algorithm: round-robin']],
  ['limits', { ...plain, limits: { connections: 1 } }, ['limits']],
  ['proxyProtocol', { ...plain, proxyProtocol: { accept: true } }, ['proxyProtocol']],
  ['idleTimeout', { ...plain, idleTimeout: '5s' }, ['idleTimeout']],
])('%s is what only the proxy can do: %o', (_, spec, keys) => {
  expect(proxyOnlyKeys(spec)).toEqual(keys);
});

test.each<[string, CarriedSpec, 'kernel' | 'proxy', string]>([
  ['nothing said', plain, 'kernel', 'kernel, since it asks for nothing else'],
  ['auto', { ...plain, dataPath: 'auto' }, 'kernel', 'kernel, since it asks for nothing else'],
  ['kernel', { ...plain, dataPath: 'kernel' }, 'kernel', 'kernel, since the service says dataPath: kernel'],
  ['proxy', { ...plain, dataPath: 'proxy' }, 'kernel', 'proxy, since the service says dataPath: proxy'],
  ['a limit', { ...plain, limits: {} }, 'kernel', 'proxy, since only the proxy can do limits'],
  [
    'kernel on a node without',
    { ...plain, dataPath: 'kernel' },
    'proxy',
    'proxy, since this node carries everything by its proxy',
  ],
])('%s', (_, spec, node, expected) => {
  const { path, why } = choosePath(spec, node);
  expect(`${path}, since ${why}`).toBe(expected);
});
