import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { HaproxyRuntime } from '../../../src/adapters/loadbalancer/haproxy-runtime.js';
import { readRunning } from '../../../src/adapters/loadbalancer/runtime-text.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };

const info = 'Name: HAProxy\nPid: 4711\nnode: vm\ndescription: holdfast abc: def\nStopping: 0\n';
/** As HAProxy 2.6 says it. */
const states = `1
# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight
3 k8s_api_backend 1 api-1 127.0.0.1 0 0 1 1 12 8 2 0 6 0 0 0 - 16443 - 0 0 - - 0
3 k8s_api_backend 2 api-2 ::1 2 8 1 1 1 1 0 2 6 0 0 0 - 16444 - 0 0 - - 0
3 k8s_api_backend 4 api-5 - 0 1 1 1 2 1 0 0 2 0 0 0 cp.example 6443 - 0 0 - - 0
4 other 1 api-9 10.0.0.9 2 0 1 1 2 1 0 0 6 0 0 0 - 6443 - 0 0 - - 0
`;
const stats = '# pxname,svname,qcur,qmax,scur,smax\nk8s_api_backend,api-1,0,0,7,9\nother,api-2,0,0,3,3\n';

test('what HAProxy says of itself is read', () => {
  const common = { changedSeconds: 1, sessions: 0, host: '' };
  expect(readRunning(info, states, stats)).toEqual({
    pid: 4_711,
    description: 'holdfast abc: def',
    servers: [
      {
        ...common,
        name: 'api-1',
        address: '127.0.0.1',
        port: 16_443,
        admin: 'ready',
        isChecked: true,
        isUp: false,
        sessions: 7,
        changedSeconds: 12,
      },
      { ...common, name: 'api-2', address: '::1', port: 16_444, admin: 'drain', isChecked: true, isUp: true },
      {
        ...{ ...common, name: 'api-5', address: undefined, port: 6_443, host: 'cp.example', changedSeconds: 2 },
        ...{ admin: 'maint', isChecked: false, isUp: false },
      },
    ],
  });
});

test.each(['', 'Pid: x\n', 'Unknown command: show info\n', 'Pid: -1\n'])('%j is no HAProxy', (text) => {
  expect(readRunning(text, states, stats)).toBeUndefined();
});

test('a HAProxy without our backend has no servers', () => {
  expect(readRunning(info, "Can't find backend.\n", "Can't find backend.\n")).toMatchObject({ pid: 4_711, servers: [] });
});

async function socketThat(answers: (command: string) => string | undefined) {
  const path = join(await tempFolder(), 's');
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {});
    socket.once('data', (data) => {
      const answer = answers(data.toString().trim());
      if (answer !== undefined) socket.end(answer);
    });
  });
  server.listen(path);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return new HaproxyRuntime(path);
}

test('one that says nothing is given up after 3 s, and one that never ends is not read to its end', async () => {
  const silent = await socketThat(() => undefined);
  const started = performance.now();
  expect(await silent.observe(options)).toBeUndefined();
  expect(performance.now() - started).toBeLessThan(15_000);
  const endless = await socketThat(() => 'x'.repeat(8 * 1024 * 1024));
  expect(await endless.observe(options)).toBeUndefined();
  await expect(endless.change({ do: 'drain', name: 'api-1' }, options)).rejects.toThrow(/^loadbalancer.not_changed: .*too much/);
});

test('an older HAProxy that knows no dynamic servers refuses, in its words', async () => {
  const old = await socketThat(() => 'Unknown command: add\n');
  await expect(old.change({ do: 'drain', name: 'api-1' }, options)).rejects.toThrow(
    'set server k8s_api_backend/api-1 state drain: Unknown command: add',
  );
});

test('a server whose connections are still ending is left for the next look', async () => {
  const busy = await socketThat((command) =>
    command.startsWith('del ') ? 'Server still has connections attached to it, cannot remove it.\n' : '\n',
  );
  await busy.change({ do: 'remove', name: 'api-1' }, options);
});
