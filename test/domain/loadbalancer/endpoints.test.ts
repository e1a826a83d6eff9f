import { expect, test } from 'vitest';
import { readEndpoints } from '../../../src/domain/loadbalancer/endpoints.js';

test.each([
  [[], []],
  [['https://10.0.0.1:6443'], [['10.0.0.1', 6443]]],
  [
    ['10.0.0.1:7443', 'https://cp.example/'],
    [
      ['10.0.0.1', 7443],
      ['cp.example', 6443],
    ],
  ],
  [
    ['https://[FD00::1]:6443', '[fd00:0::2]:6443', 'fd00::3'],
    [
      ['fd00::1', 6443],
      ['fd00::2', 6443],
      ['fd00::3', 6443],
    ],
  ],
  [['CP.example:1', 'cp.example:1', 'https://cp.example:1'], [['cp.example', 1]]],
  [
    ['127.0.0.1:6443', 'localhost:6443'],
    [
      ['127.0.0.1', 6443],
      ['localhost', 6443],
    ],
  ],
])('%j are read', (list, expected) => {
  const read = readEndpoints(list);
  expect(read.ok && read.endpoints.map(({ host, port }) => [host, port])).toEqual(expected);
});

test.each([
  '10.0.0.1:6443 check\n    server evil 10.6.6.6:1',
  '10.0.0.1:6443\nfrontend evil',
  '10.0.0.1:6443\r\n',
  'https://10.0.0.1:6443 # x',
  '10.0.0.1:6443;shutdown',
  '$HOME:6443',
  '%[env(HOME)]:6443',
  '"10.0.0.1":6443',
  '10.0.0.1\\:6443',
  'unix@/run/x.sock',
  '/run/x.sock:1',
  'abns@x:1',
  'fd@3:1',
  'ipv4@10.0.0.1:6443',
  'http://10.0.0.1:6443',
  'HTTPS://10.0.0.1:6443',
  'https://user@10.0.0.1:6443',
  'https://10.0.0.1:6443/path',
  'https://10.0.0.1:6443//',
  '10.0.0.1:0',
  '10.0.0.1:65536',
  '10.0.0.1:06443',
  '10.0.0.1:+1',
  '010.0.0.1:6443',
  '10.0.0.256:6443',
  '10.0.0:6443',
  'fe80::1%eth0',
  '[::ffff:10.0.0.1]:6443',
  '0.0.0.0:6443',
  '[::]:6443',
  '224.0.0.1:6443',
  '[ff02::1]:6443',
  '-cp.example:6443',
  'cp_1.example:6443',
  'cp .example:6443',
  '',
  ' ',
  '\0',
  'https://',
  '10.0.0.1:6446',
  '10.0.0.1:6443\u2028',
  '１0.0.0.1:6443',
])('the endpoint %j refuses the list', (bad) => {
  const read = readEndpoints(['10.0.0.9:6443', bad]);
  expect(read).toEqual({ ok: false, problem: expect.stringMatching(/^".* is no endpoint of an API server$/s) });
});

test.each([
  [null, 'it is no list of endpoints'],
  [{ length: 1, 0: '10.0.0.1:1' }, 'it is no list of endpoints'],
  ['10.0.0.1:6443', 'it is no list of endpoints'],
  [[7], '7 is no endpoint of an API server'],
  [[null], 'null is no endpoint of an API server'],
  [[['10.0.0.1:6443']], '["10.0.0.1:6443"] is no endpoint of an API server'],
  [Array(10_000).fill('10.0.0.1:6443'), 'it has 10000 endpoints, 64 at most'],
  [['x'.repeat(1_000_000)], `"${'x'.repeat(99)}... is no endpoint of an API server`],
])('%j is no list', (value, problem) => {
  expect(readEndpoints(value)).toEqual({ ok: false, problem });
});
