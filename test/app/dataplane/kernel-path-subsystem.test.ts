import { expect, test } from 'vitest';
import { MemoryOutbox } from '../../../src/adapters/outbox/memory-outbox.js';
import { KernelPathSubsystem } from '../../../src/app/dataplane/kernel-path-subsystem.js';
import { PathMoves } from '../../../src/app/dataplane/path-moves.js';
import { defaultMarks } from '../../../src/domain/dataplane/kernel-model.js';
import type { RuleBatch } from '../../../src/domain/dataplane/ruleset.js';
import { VIP_RANGE_KEY } from '../../../src/domain/dataplane/vip.js';
import type { NodeName } from '../../../src/domain/identity/model.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { ZERO_SEQUENCE } from '../../../src/domain/outbox/model.js';
import { FakeConntrack } from '../../fakes/fake-conntrack.js';
import { FakePacketFilter } from '../../fakes/fake-packet-filter.js';
import { FakeSysctls } from '../../fakes/fake-sysctls.js';
import { id } from '../../support/l4-rig.js';
import { applyCall, options, resourceRig, serviceDocument } from '../../support/resource-rig.js';

const { signal } = options;
const FORWARD = 'net.ipv4.ip_forward';

/** Batch by batch; `all` of those that had everything before them give way. */
function told({ batches }: FakePacketFilter): readonly string[] {
  return batches.map(({ batch, whole }) => (whole ? `all: ${shown(batch)}` : shown(batch)));
}

/** Elements of what services have, `+service4`. */
function shown(batch: RuleBatch): string {
  const elements = batch.flatMap((one) => {
    if (one.kind !== 'add-elements' && one.kind !== 'delete-elements') return [];
    return /^(service|endpoint|proxied)/.test(one.set) ? [`${one.kind === 'add-elements' ? '+' : '-'}${one.set}`] : [];
  });
  return elements.join(' ');
}

async function setUp({ manageSysctls = true, forward = '0', ranged = true } = {}) {
  const rig = await resourceRig({ following: true });
  const changes = [{ key: VIP_RANGE_KEY, value: JSON.stringify('10.192.0.0/16') }];
  if (ranged) await rig.log.propose({ changes, preconditions: [] }, options);
  await rig.clock.advance(0);
  const [filter, moves, outbox] = [new FakePacketFilter(), new PathMoves(), new MemoryOutbox()];
  const sysctls = new FakeSysctls({ [FORWARD]: forward });
  const kernel = new KernelPathSubsystem({
    ...{ nodeId: 'here' as NodeName, view: rig.view, filter, moves, sysctls, outbox, clock: rig.clock, logger: rig.logger },
    ...{ conntrack: new FakeConntrack(), marks: defaultMarks, manageSysctls, wantsOwner: true, random: () => 0 },
  });
  const apply = async (...values: readonly unknown[]) => {
    await rig.resources.apply(applyCall(values), options);
    await rig.clock.advance(0);
  };
  const events = async () => (await outbox.read(ZERO_SEQUENCE, 100, options)).map(({ message }) => message);
  const start = async () => {
    await kernel.start();
    await rig.clock.advance(0);
  };
  return { ...rig, filter, moves, sysctls, kernel, apply, events, start };
}

const endpoints = [{ address: '10.9.0.1', port: 1 }];
const byKernel = serviceDocument('a', { endpoints });
const byProxy = serviceDocument('a', { endpoints, dataPath: 'proxy' });

test('ready when the kernel has acknowledged; then only what changes', async () => {
  const { apply, filter, kernel, start } = await setUp();
  await apply(byKernel);
  expect(kernel.carries(id('a'))).toBeUndefined();
  await start();
  await kernel.ready(signal);
  expect(kernel.carries(id('a'))).toMatchObject({ port: 80, path: 'kernel' });
  await apply(serviceDocument('b', { endpoints }));
  expect(told(filter)).toEqual(['all: +endpoint4 +service4', '+endpoint4 +service4']);
  expect(kernel.figures()).toMatchObject({ services: 2, slots: 2, commits: 2, repairs: 0 });
  await kernel.stop();
});

test('ready without a table where the control plane has no services', async () => {
  const { filter, kernel, start } = await setUp({ ranged: false });
  await start();
  await kernel.ready(signal);
  expect(told(filter)).toEqual([]);
  await kernel.stop();
});

test('a port that goes to the proxy is let through at once, and carried until the proxy stands', async () => {
  const { apply, filter, kernel, moves, clock, start } = await setUp();
  await apply(byKernel);
  await start();
  await apply(byProxy);
  await clock.advance(60_000);
  expect(told(filter).slice(1)).toEqual(['+proxied4']);
  moves.took('proxy', [id('a')], clock.monotonic());
  await clock.advance(0);
  expect(told(filter).slice(2)).toEqual(['-service4', '-endpoint4']);
  expect([kernel.carries(id('a')), moves.since('kernel', id('a'))]).toEqual([undefined, undefined]);

  await apply(byKernel);
  expect(told(filter).slice(4)).toEqual(['+endpoint4 +service4']);
  moves.letGo('proxy', [id('a')]);
  await clock.advance(0);
  expect(told(filter).slice(5)).toEqual(['-proxied4']);
  await kernel.stop();
});

test('a batch that fails, and what somebody else has changed, are made good from what the kernel has', async () => {
  const { apply, filter, kernel, clock, events, start } = await setUp({ forward: '1' });
  await apply(byKernel);
  await start();
  filter.failNext(new AgentError('dataplane.filter_failed', { problem: 'set service4: No space left on device' }));
  await apply(serviceDocument('b', { endpoints }));
  expect(kernel.problems()).toMatchObject([{ reason: expect.stringContaining('set service4: No space left on device') }]);
  await clock.advance(200);
  expect([kernel.problems(), told(filter).at(-1)]).toEqual([[], '+service4 +endpoint4']);
  filter.flush();
  await clock.advance(0);
  expect(told(filter)).toHaveLength(3);
  expect((await events()).at(-1)).toBe('the rules of services had been changed by somebody else; they stand again');
  await kernel.stop();
});

test('what stands in the way is named: chains that drop, a kernel that cannot keep rules, sysctls', async () => {
  const { filter, kernel, clock, start } = await setUp({ manageSysctls: false });
  const chain = { table: 'inet fw', chain: 'fwd', hook: 'forward', priority: 0, policy: 'drop' } as const;
  filter.owned = false;
  filter.foreign = [chain, { ...chain, table: 'ip ok', policy: 'accept' }, { ...chain, table: 'netdev n', hook: 'ingress' }];
  await start();
  expect(kernel.problems().map(({ reason }) => reason)).toEqual([
    'table inet fw, chain fwd drops in forward what no rule of it accepts',
    'net.ipv4.ip_forward is not 1: connections of other machines and of instances are not carried to endpoints',
    'this kernel cannot keep the rules from others: who flushes them resets running connections',
  ]);
  filter.foreign = [];
  await clock.advance(30_000);
  expect(kernel.problems()).toHaveLength(2);
  await kernel.stop();
});

test('sysctls are set, and again when somebody sets them back', async () => {
  const { kernel, sysctls, clock, events, start } = await setUp();
  await start();
  expect([sysctls.dump(), await events()]).toEqual([`${FORWARD} = 1`, []]);
  sysctls.reset(FORWARD, '0');
  await clock.advance(30_000);
  expect([sysctls.dump(), await events()]).toEqual([`${FORWARD} = 1`, [`somebody had set ${FORWARD} back; it is 1 again`]]);
  await kernel.stop();
});
