import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test as anywhere, describe, expect, onTestFinished } from 'vitest';
import { EtcdOrderedLog } from '../../../src/adapters/log/etcd-ordered-log.js';
import { LogConsumer } from '../../../src/app/log/log-consumer.js';
import { ResourceService } from '../../../src/app/resource/resource-service.js';
import { vipRange } from '../../../src/domain/dataplane/vip.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { qualifiedName } from '../../../src/domain/resource/model.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeListenerStatus } from '../../fakes/fake-listener-status.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { EtcdRig, hasEtcd } from '../../support/etcd-rig.js';
import { applyCall, options, ref, serviceDocument } from '../../support/resource-rig.js';

const test = anywhere.skipIf(!hasEtcd);

const HOUR = 3_600_000;
/** Of a /28, without those of network, gateway and broadcast. */
const ADDRESSES = 13;

/** Two replicas of one log, the second one's clock two hours ahead. */
async function replicas(range: string, hearEachOther: boolean) {
  const etcd = await EtcdRig.start();
  onTestFinished(() => etcd.stop());
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-clocks-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const begun = Date.UTC(2026, 0, 31, 12);
  const clocks = [new FakeClock(begun), new FakeClock(begun + 2 * HOUR)];
  const made = await Promise.all(
    clocks.map(async (clock, index) => {
      const others = () => (hearEachOther ? clocks[1 - index]?.now() : undefined);
      const log = new EtcdOrderedLog({
        ...{ client: etcd.client(), prefix: '/holdfast/t/log/', witness: join(folder, `${index}.witness`), clock, others },
      });
      await log.open(options);
      const view = new LogConsumer(log, clock, new FakeLogger());
      await view.start();
      onTestFinished(async () => {
        await view.stop();
        await log.close();
      });
      const listeners = new FakeListenerStatus();
      return { log, view, clock, resources: new ResourceService({ log, view, listeners, clock, vipRange: vipRange(range) }) };
    }),
  );
  const [slow, fast] = made;
  if (slow === undefined || fast === undefined) throw new Error('no replicas');
  return { slow, fast };
}

type Replica = Awaited<ReturnType<typeof replicas>>['slow'];

const vipOf = async ({ resources, view }: Replica, name: string) => {
  await resources.get({}, options);
  return view.state.vips.ofService(qualifiedName('default', name));
};

describe('E19: two replicas whose clocks are 2 h apart', () => {
  test('1,000 services created and deleted: addresses are unique, and none is used again within 60 s', {
    timeout: 120_000,
  }, async () => {
    const { slow, fast } = await replicas('10.192.0.0/16', false);
    const used = new Set<string>();
    for (let batch = 0; batch < 10; batch += 1) {
      const names = (by: string) => Array.from({ length: 50 }, (_, i) => `s-${by}-${batch}-${i}`);
      const [mine, theirs] = [names('slow'), names('fast')];
      await Promise.all([
        slow.resources.apply(applyCall(mine.map((name) => serviceDocument(name))), options),
        fast.resources.apply(applyCall(theirs.map((name) => serviceDocument(name))), options),
      ]);
      for (const name of [...mine, ...theirs]) used.add(String(await vipOf(slow, name)));
      // Each deletes what the other has made.
      await Promise.all([
        slow.resources.delete({ refs: theirs.map((name) => ref(name)), dryRun: false, ignoreNotFound: false }, options),
        fast.resources.delete({ refs: mine.map((name) => ref(name)), dryRun: false, ignoreNotFound: false }, options),
      ]);
    }
    expect(used.size).toBe(1_000);
    expect(used.has('undefined')).toBe(false);
    // The log's time is the faster one's from its first entry on.
    expect(slow.log.problems()).toMatchObject([{ subject: 'clock', reason: expect.stringContaining(`${7_200} s behind`) }]);
  });

  test('in a small pool the fast one cannot end the cool-down of the others: it is refused and named until its clock is set', async () => {
    const { slow, fast } = await replicas('10.192.0.0/28', true);
    const names = Array.from({ length: ADDRESSES }, (_, i) => `s${i}`);
    await slow.resources.apply(applyCall(names.map((name) => serviceDocument(name))), options);
    await slow.resources.delete({ refs: [ref('s0')], dryRun: false, ignoreNotFound: false }, options);
    const again = applyCall([serviceDocument('late')]);
    await expect(fast.resources.apply(again, options)).rejects.toMatchObject({ code: 'log.clock_ahead' });
    expect(fast.log.problems()).toMatchObject([{ subject: 'clock', remedy: expect.stringContaining('NTP') }]);
    expect(slow.log.problems()).toEqual([]);
    fast.clock.setWall(slow.clock.now());
    expect(fast.log.problems()).toEqual([]);
    const refused = await fast.resources.apply(again, options).catch((error: unknown) => error);
    expect(JSON.stringify(refused instanceof AgentError ? refused.message : refused)).toMatch(/cool|free/);
  });
});
