import { expect, test } from 'vitest';
import { formatExplanation } from '../../../src/adapters/cli/explain.js';

const endpoint = {
  ...{ name: 'one', target: '10.0.0.1:80', source: 'inline', node: 'here', weight: 3, tier: 0, verdict: 'chosen', share: 0.75 },
  ...{ reason: '', sinceMs: 0n, active: 4n },
};
const port = {
  ...{ name: 'http', port: 80, protocol: 'tcp', state: 'listening', listen: '127.192.0.2:8080', reason: '', remedy: '' },
  ...{ choice: 'each new connection: at random, by weight', outcome: 'new connections go to 1 of 2 endpoints', endpoints: [] },
  from: undefined,
};

test('for people', () => {
  const endpoints = [
    endpoint,
    { ...endpoint, target: '10.0.0.2:80', node: '', verdict: 'unhealthy', share: 0, reason: 'status 503', sinceMs: 30_000n },
    { ...endpoint, target: '10.0.0.3:80', source: '', node: '', weight: 0, verdict: 'draining', share: 0, reason: 'withdrawn' },
  ];
  const from = { address: '192.0.2.1', target: '10.0.0.1:80', reason: 'by the hash of its address' };
  const failed = {
    ...port,
    name: 'dns',
    port: 53,
    protocol: 'udp',
    listen: '',
    state: 'failed',
    reason: 'taken',
    remedy: 'free it',
  };
  const response = { nodeId: 'here', revision: 7n, ports: [{ ...port, from, endpoints }, failed] };
  expect(formatExplanation('service/a', response, 90_000)).toBe(
    `SERVICE  service/a
port     http (80/tcp)
node     here
listens  on 127.192.0.2:8080
chosen   each new connection: at random, by weight
outcome  new connections go to 1 of 2 endpoints
from     192.0.2.1 gets 10.0.0.1:80: by the hash of its address

ENDPOINT     FROM    NODE  WEIGHT  TIER  SHARE  ACTIVE  VERDICT
10.0.0.1:80  inline  here  3       0     75.0%  4       chosen
10.0.0.2:80  inline  -     3       0     -      4       unhealthy for 60s: status 503
10.0.0.3:80  -       -     -       0     -      4       draining: withdrawn

SERVICE  service/a
port     dns (53/udp)
node     here
listens  not: taken; free it
chosen   each new connection: at random, by weight
outcome  new connections go to 1 of 2 endpoints
`,
  );
});

test('what does not listen yet, and whose endpoint cannot be told', () => {
  const from = { address: '192.0.2.1', target: '', reason: 'random does not tell beforehand' };
  const response = { nodeId: 'here', revision: 7n, ports: [{ ...port, listen: '', state: 'pending', from }] };
  const onNodes = { ...response, ports: response.ports.map((each) => ({ ...each, state: 'elsewhere' })) };
  expect(formatExplanation('service/a', onNodes).split('\n')[3]).toBe('listens  on the nodes');
  const lines = formatExplanation('service/a', response).split('\n');
  expect([lines[3], lines[6]]).toEqual(['listens  not yet', 'from     192.0.2.1 gets any: random does not tell beforehand']);
});
