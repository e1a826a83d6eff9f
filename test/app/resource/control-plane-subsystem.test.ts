import { describe, expect, test } from 'vitest';
import { ControlPlaneSubsystem } from '../../../src/app/resource/control-plane-subsystem.js';
import { VIP_RANGE_KEY, vipRange } from '../../../src/domain/dataplane/vip.js';
import type { Proposal } from '../../../src/domain/log/model.js';
import type { CallOptions } from '../../../src/ports/call-options.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';
import { options, resourceRig } from '../../support/resource-rig.js';

const { signal } = options;
const range = vipRange('10.192.0.0/16');

describe('the first start of a log', () => {
  test('writes the range, once', async () => {
    const { log, view } = await resourceRig();
    for (let start = 0; start < 3; start++) {
      const subsystem = new ControlPlaneSubsystem(log, view, range);
      await subsystem.start(signal);
      await subsystem.ready();
      await subsystem.stop();
    }
    expect(log.dump()).toBe('settings/vip-range = "10.192.0.0/16" @ 1');
    expect(view.state.vipRange).toBe('10.192.0.0/16');
  });

  test('another range than the one that the log was begun with is refused, and nothing is written', async () => {
    const { log, view } = await resourceRig();
    await new ControlPlaneSubsystem(log, view, range).start(signal);
    const before = log.dump();
    const moved = new ControlPlaneSubsystem(log, view, vipRange('10.200.0.0/16'));
    await expect(moved.start(signal)).rejects.toMatchObject({
      code: 'vip.range_changed',
      message: expect.stringContaining('10.192.0.0/16'),
    });
    expect(log.dump()).toBe(before);
  });

  test.each([
    ['the same', '10.192.0.0/16', undefined],
    ['another', '10.200.0.0/16', 'vip.range_changed'],
  ])('another first start that was quicker, with %s range, is looked at', async (_, cidr, code) => {
    class RacedLog extends FakeOrderedLog {
      override async propose(proposal: Proposal, callOptions: CallOptions) {
        const value = JSON.stringify(cidr);
        await super.propose({ changes: [{ key: VIP_RANGE_KEY, value }], preconditions: [] }, callOptions);
        return super.propose(proposal, callOptions);
      }
    }
    const clock = new FakeClock();
    const { log, view } = await resourceRig({ clock, log: new RacedLog({ clock }) });
    const started = new ControlPlaneSubsystem(log, view, range).start(signal);
    if (code === undefined) await started;
    else await expect(started).rejects.toMatchObject({ code });
  });

  test('waits for the view, until its signal ends', async () => {
    const { log, view, clock } = await resourceRig({ following: false });
    await log.propose({ changes: [{ key: VIP_RANGE_KEY, value: '"10.192.0.0/16"' }], preconditions: [] }, options);
    const abort = new AbortController();
    const started = new ControlPlaneSubsystem(log, view, range).start(abort.signal);
    await clock.advance(60_000);
    abort.abort(new Error('over'));
    await expect(started).rejects.toThrow('over');
  });
});
