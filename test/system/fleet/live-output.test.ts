import { afterAll, beforeAll, expect, test } from 'vitest';
import { InstructionState } from '../../../src/adapters/generated/holdfast/admin/v1/fleet.js';
import { Fleet } from '../support/fleet.js';
import { until } from '../support/fleet-daemon.js';

const LINES = 50;
const whole = Array.from({ length: LINES }, (_, index) => `line ${index + 1}\n`).join('');

let fleet: Fleet;

beforeAll(async () => {
  const counts = `for i in $(seq ${LINES}); do echo line $i; sleep 0.2; done; echo done >&2; exit 3\n`;
  fleet = await Fleet.start({ scripts: { counts, noise: 'yes noise-of-a-script\n' } });
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** What a script is heard to say at the control plane; `over` when its instruction has ended, or the server is gone. */
function listen(nid: string, tag: string) {
  const heard = { stdout: '', bytes: 0, gaps: 0 };
  let end = 0n;
  const over = fleet.server
    .ask(async (client, given) => {
      for await (const { stream, offset, data } of client.followOutput({ node: nid, tag }, given)) {
        if (stream !== 'stdout') continue;
        if (offset > end) heard.gaps += 1;
        end = offset + BigInt(data.length);
        heard.bytes += data.length;
        if (heard.bytes < 1_000_000) heard.stdout += data.toString();
      }
    })
    .catch(() => {});
  return { heard, over };
}

const stateOf = (nid: string, tag: string) =>
  fleet.server.ask(async (client, given) => (await client.getInstruction({ node: nid, tag }, given)).instruction?.state);

const follow = (nid: string, tag: string) => {
  const script = ['send', nid, 'RUN_REMOTE_SCRIPT', '--json', '{"script":"counts"}', '--tag', tag];
  return fleet.server.cli([...script, '--follow']);
};

test('A17: what a script says is heard while it runs, also when its agent is killed in the middle; nothing is shown twice', async () => {
  const { nid, daemon } = fleet.agent();
  const shown = follow(nid, 'killed-agent');
  await until(
    () => stateOf(nid, 'killed-agent').catch(() => undefined),
    (state) => state === InstructionState.DELIVERED,
  );
  const { heard, over } = listen(nid, 'killed-agent');
  await until(
    async () => heard.stdout,
    (text) => text.startsWith('line 1\n') && text.split('\n').length > 5,
    10_000,
  );
  expect(await stateOf(nid, 'killed-agent')).toBe(InstructionState.DELIVERED);
  await daemon.stop('SIGKILL');
  await daemon.start();
  expect(await shown).toEqual({ code: 0, stdout: whole, stderr: 'done\nexit code 3\n' });
  await over;
  expect(whole.startsWith(heard.stdout)).toBe(true);
});

test('A17: also when the server is killed: its next life is told on', async () => {
  const { nid } = fleet.agent();
  await fleet.send(nid, 'RUN_REMOTE_SCRIPT', { script: 'counts' }, 'killed-server');
  const first = listen(nid, 'killed-server');
  await until(
    async () => first.heard.stdout,
    (text) => text.startsWith('line 1\n'),
    10_000,
  );
  await fleet.server.stop('SIGKILL');
  await fleet.server.start();
  const second = listen(nid, 'killed-server');
  const result = await fleet.resultOf(nid, 'killed-server');
  expect(result).toMatchObject({ state: InstructionState.DONE, reply: { response: whole, exitCode: 3 } });
  await second.over;
  expect(whole).toContain(second.heard.stdout);
});

test('A17: a script that says 100 MB is heard in part, and leaves the link to everything else', async () => {
  const { nid } = fleet.agent();
  const ended = fleet.result(nid, 'RUN_REMOTE_SCRIPT', { script: 'noise', timeoutSeconds: 6 }, 'noise');
  await until(
    () => stateOf(nid, 'noise').catch(() => undefined),
    (state) => state === InstructionState.DELIVERED,
  );
  const { heard, over } = listen(nid, 'noise');
  for (let round = 0; round < 10; round += 1) {
    const start = performance.now();
    await fleet.result(nid, 'GET_NODE_STATUS', {});
    expect(performance.now() - start).toBeLessThan(2_000);
  }
  expect(await ended).toMatchObject({ reply: { timedOut: true } });
  await over;
  expect(heard.stdout).toContain('noise-of-a-script\n');
  // The runner keeps 2 MiB of a stream, and the agent tells 256 KiB a second of messages.
  expect(heard.bytes).toBeLessThan(2 * 1024 * 1024);
});
