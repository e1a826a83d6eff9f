import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test as anywhere, describe, expect, onTestFinished } from 'vitest';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { EtcdOrderedLog } from '../../../src/adapters/log/etcd-ordered-log.js';
import { LogConsumer } from '../../../src/app/log/log-consumer.js';
import { ResourceService } from '../../../src/app/resource/resource-service.js';
import { vipRange } from '../../../src/domain/dataplane/vip.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { proposal, set } from '../../contract/ordered-log.support.js';
import { FakeListenerStatus } from '../../fakes/fake-listener-status.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { EtcdRig, hasEtcd } from '../../support/etcd-rig.js';
import { eventually } from '../../support/eventually.js';
import { applyCall, options, serviceDocument } from '../../support/resource-rig.js';

const test = anywhere.skipIf(!hasEtcd);

/** What is promised for 5 s, five times: the machine of a test may be busy. */
const LATEST_MS = 25_000;

async function controlPlane() {
  const etcd = await EtcdRig.start({ members: 3 });
  onTestFinished(() => etcd.stop());
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-quorum-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const clock = new SystemClock({ unref: true });
  const replica = async (name: string) => {
    const witness = join(folder, `${name}.witness`);
    const log = new EtcdOrderedLog({ client: etcd.client(), prefix: '/holdfast/t/log/', witness, clock });
    await log.open(options);
    const view = new LogConsumer(log, clock, new FakeLogger());
    await view.start();
    onTestFinished(async () => {
      await view.stop();
      await log.close();
    });
    const resources = new ResourceService({
      ...{ log, view, listeners: new FakeListenerStatus(), clock, vipRange: vipRange('10.192.0.0/16') },
      newest: (given) => log.newest(given),
    });
    return { log, resources };
  };
  return { etcd, one: await replica('one'), other: await replica('other') };
}

/** How it failed, and how long that took. */
async function failureOf(work: Promise<unknown>): Promise<{ readonly error: AgentError; readonly ms: number }> {
  const begun = performance.now();
  const error = await work.then(
    () => new Error('it succeeded'),
    (error: unknown) => error,
  );
  if (!(error instanceof AgentError)) throw error;
  return { error, ms: performance.now() - begun };
}

describe('E10: an etcd whose quorum is gone', () => {
  const names = async ({ resources }: Awaited<ReturnType<typeof controlPlane>>['one'], stale = false) =>
    (await resources.get({}, { ...options, stale })).objects.map(({ metadata }) => metadata.name);

  test('what one replica was told is read on the other at once, and by its revision', async () => {
    const { one, other } = await controlPlane();
    for (let i = 0; i < 20; i += 1) {
      const applied = await one.resources.apply(applyCall([serviceDocument(`s${i}`)]), options);
      if (applied.outcome !== 'applied') throw new Error('not applied');
      expect(await names(other)).toContain(`s${i}`);
      const { revision } = await other.resources.get({}, { ...options, stale: true, atLeast: applied.revision });
      expect(revision).toBeGreaterThanOrEqual(applied.revision);
    }
  });

  test.each(['SIGKILL', 'SIGSTOP'] as const)(
    'two of three members get %s: writes fail within 5 s, reads too unless they may be stale, and all goes on when they are back',
    { timeout: 120_000 },
    async (signal) => {
      const { etcd, one } = await controlPlane();
      await one.resources.apply(applyCall([serviceDocument('before')]), options);
      for (const member of [0, 1]) {
        if (signal === 'SIGKILL') await etcd.kill(member);
        else etcd.signal(member, signal);
      }
      if (signal === 'SIGSTOP') onTestFinished(() => void [0, 1].map((member) => etcd.signal(member, 'SIGCONT')));
      const calls = await Promise.all([
        failureOf(one.resources.apply(applyCall([serviceDocument('late')], { requestId: 'r1' }), options)),
        failureOf(one.resources.get({}, options)),
        failureOf(one.log.propose({ ...proposal(set('a', '1')), requestId: 'r2' }, options)),
      ]);
      expect(calls[0].error.message).toMatch(/not written|outcome unknown, request id r1/);
      expect(calls[1].error.code).toBe('log.not_current');
      expect(calls[2].error.code).toMatch(/^log\.(not_written|outcome_unknown)$/);
      for (const { ms } of calls) expect(ms).toBeLessThan(LATEST_MS);
      expect(await names(one, true)).toEqual(['before']);
      expect((await one.resources.get({}, { ...options, stale: true })).ageMs).toBeGreaterThan(0);
      for (const member of [0, 1]) {
        if (signal === 'SIGKILL') etcd.restart(member);
        else etcd.signal(member, 'SIGCONT');
      }
      await eventually(() => names(one).catch(() => [])).toContain('before');
      await one.resources.apply(applyCall([serviceDocument('after')]), options);
      expect(await names(one)).toContain('after');
    },
  );
});
