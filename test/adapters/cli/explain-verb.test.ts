import { describe, expect, test } from 'vitest';
import { logKey } from '../../../src/domain/log/model.js';
import { cliRig, run } from '../../support/cli-rig.js';
import { applyCall, options, serviceDocument } from '../../support/resource-rig.js';

const endpoints = [{ address: '10.0.0.1', node: 'n1' }, { address: '10.0.0.2' }];

async function rig() {
  const made = await cliRig();
  const spec = { health: { tcp: {} }, balance: { algorithm: 'source-hash', locality: 'prefer-local' }, endpoints };
  await made.resources.apply(applyCall([serviceDocument('a', spec)]), options);
  return made;
}

describe('explain', () => {
  test('as a table', async () => {
    const { cli } = await rig();
    expect(await cli(['explain', 'service', 'a', '--from', '192.0.2.1'])).toEqual({
      code: 0,
      err: '',
      out: `SERVICE  service/a
port     http (80/tcp)
node     n1
listens  not yet
chosen   each new connection: by a hash of the client's address, so that one address keeps its endpoint while that is there; endpoints of this node first
outcome  new connections go to 1 of 2 endpoints
from     192.0.2.1 gets 10.0.0.1:80: it is the only one

ENDPOINT     FROM    NODE  WEIGHT  TIER  SHARE   ACTIVE  VERDICT
10.0.0.1:80  inline  n1    1       0     100.0%  0       chosen
10.0.0.2:80  inline  -     1       1     -       0       standby: used when no endpoint of this node can be
`,
    });
  });

  test('as data', async () => {
    const { cli, log } = await rig();
    const value = '{"healthy":false,"node":"n1","reason":"status 503, expected 200 to 399","since":5}';
    await log.propose({ changes: [{ key: logKey('health/default/a/10.0.0.1:80'), value }], preconditions: [] }, options);
    const { out } = await cli(['explain', 'svc/a', '--port', 'http', '-o', 'json']);
    const explained: unknown = JSON.parse(out);
    expect(explained).toMatchObject({
      ...{ service: 'a', namespace: 'default', nodeId: 'n1', revision: 2 },
      ports: [
        {
          name: 'http',
          endpoints: [
            { target: '10.0.0.1:80', verdict: 'unhealthy', reason: 'status 503, expected 200 to 399', sinceMs: 5, share: 0 },
            { target: '10.0.0.2:80', verdict: 'chosen', share: 1, tier: 1 },
          ],
        },
      ],
    });
  });

  test('unhealthy endpoints in get and describe', async () => {
    const { cli, log } = await rig();
    const value = '{"healthy":false,"node":"n1","reason":"connection refused","since":5}';
    const changes = ['10.0.0.1:80', '10.0.0.2:80'].map((target) => ({ key: logKey(`health/default/a/${target}`), value }));
    await log.propose({ changes, preconditions: [] }, options);
    expect((await cli(['get', 'services'])).out).toContain('0/2 ready, 2 unhealthy');
    const { out } = await cli(['describe', 'service', 'a']);
    expect(out).toContain(
      'NO TRAFFIC: none of its 2 endpoints is ready, so that connections are accepted and reset at once; mend what the checks have found; holdfast explain service a',
    );
    expect(out).toMatch(/10\.0\.0\.1:80 +http +inline +1 +no: connection refused/);
  });

  test.each([
    { args: ['service', 'b'], code: 1, err: 'resource.not_found: service/b' },
    { args: ['service', 'a', '--port', '81'], code: 1, err: 'service/a has no port 81; its ports are http (80)' },
    { args: ['service', 'a', '--from', 'me'], code: 1, err: 'expected an IP address to look from, found "me"' },
    { args: ['service'], code: 2, err: 'expected service NAME, found service' },
    { args: ['endpoints', 'a'], code: 2, err: 'expected service NAME, found endpoints a' },
    { args: ['servce', 'a'], code: 2, err: 'did you mean service?' },
  ])('$args ends with $code', async ({ args, code, err }) => {
    const { cli } = await rig();
    const result = await cli(['explain', ...args]);
    expect(result).toMatchObject({ code, out: '' });
    expect(result.err).toContain(err);
  });

  test('without a daemon', async () => {
    expect(await run(['explain', 'service', 'a', '--data-dir', '/nowhere'])).toMatchObject({ code: 3, out: '' });
  });
});
