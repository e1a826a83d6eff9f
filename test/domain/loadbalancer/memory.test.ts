import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeServers, encodeServers } from '../../../src/domain/loadbalancer/memory.js';
import { nameServers } from '../../../src/domain/loadbalancer/names.js';
import { endpoint } from '../../support/endpoint.js';

test('what is remembered is read again', () => {
  const servers = nameServers(['10.0.0.1', '[fd00::1]:7443', 'cp.example:1'].map(endpoint), [], ['api-2']);
  expect(decodeServers(encodeServers(servers))).toEqual(servers);
});

const good = '{"name":"api-1","host":"10.0.0.1","port":6443}';
test.each([
  '',
  'null',
  '[]',
  '{}',
  '{"servers":[]}',
  '{"servers":[null]}',
  `{"servers":[${good},${good}]}`,
  `{"servers":[${good},{}]}`,
  `{"servers":[${good}`,
  '{"servers":[{"name":"api-0","host":"10.0.0.1","port":6443}]}',
  '{"servers":[{"name":"api-1 x","host":"10.0.0.1","port":6443}]}',
  '{"servers":[{"name":"api-1","host":"10.0.0.1\\n","port":6443}]}',
  '{"servers":[{"name":"api-1","host":"10.0.0.1","port":"6443"}]}',
  '{"servers":[{"name":"api-1","host":"10.0.0.1","port":0}]}',
  `{"servers":[${Array(65).fill(good).join(',')}]}`,
])('%s is nothing', (text) => {
  expect(decodeServers(text)).toBeUndefined();
});

test('nothing that is no list of servers is taken for one', () => {
  fc.assert(fc.property(fc.json(), (text) => decodeServers(text) === undefined));
});
