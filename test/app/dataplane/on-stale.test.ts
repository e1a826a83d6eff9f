import { expect, test } from 'vitest';
import { MemoryOutbox } from '../../../src/adapters/outbox/memory-outbox.js';
import { L4Subsystem } from '../../../src/app/dataplane/l4-subsystem.js';
import { PathMoves } from '../../../src/app/dataplane/path-moves.js';
import type { NodeName } from '../../../src/domain/identity/model.js';
import { logKey } from '../../../src/domain/log/model.js';
import { FakeListenPortMemory } from '../../fakes/fake-listen-port-memory.js';
import { WatchedDataPlane } from '../../support/l4-rig.js';
import { options, put, RemoteRig } from '../../support/remote-rig.js';

const vip = (address: string, service: string) => ({
  key: logKey(`vip/${address}`),
  value: JSON.stringify({ service: `default/${service}` }),
});

function l4On(rig: RemoteRig) {
  const dataPlane = new WatchedDataPlane();
  const l4 = new L4Subsystem({
    kernel: false,
    moves: new PathMoves(),
    ...{ nodeId: 'here' as NodeName, view: rig.consumer, dataPlane, memory: new FakeListenPortMemory(), clock: rig.clock },
    ...{ random: () => 0, logger: rig.logger, mayMovePorts: false, connectTimeoutMs: 2_000, outbox: new MemoryOutbox() },
  });
  return { dataPlane, l4 };
}

const refusing = '10.192.0.3:80 random drain=30000 refuse ->';
const serving = '10.192.0.3:80 random drain=30000 ->';

test('J3: a service that refuses does so from the first moment until fresh, and again 30 s after the last sign; others go on', async () => {
  const rig = new RemoteRig();
  await rig.write(put('a'), vip('10.192.0.2', 'a'), put('careful', { onStale: 'refuse' }), vip('10.192.0.3', 'careful'));
  await rig.start();
  const { dataPlane, l4 } = l4On(rig);
  await l4.start(options.signal);
  const lines = async (ms: number) => {
    await rig.clock.advance(ms);
    return dataPlane
      .dump()
      .split('\n')
      .map((line) => line.slice(line.indexOf(' ') + 1));
  };
  const a = '10.192.0.2:80 random drain=30000 ->';
  expect(await lines(0)).toEqual([a, refusing]);
  expect(await lines(10_000)).toEqual([a, serving]);
  const applied = dataPlane.deltas.length;
  rig.log.down();
  expect(await lines(30_000)).toEqual([a, serving]);
  expect(await lines(1_000)).toEqual([a, refusing]);
  rig.log.up();
  expect(await lines(90_000)).toEqual([a, serving]);
  expect(dataPlane.deltas.slice(applied)).toEqual(['+default/careful/http:80', '+default/careful/http:80']);
  await l4.stop(options.signal);
  await rig.consumer.stop(options.signal);
});

test('J1, J3: after a restart without a control plane the stored view serves, and what must refuse refuses', async () => {
  const rig = new RemoteRig();
  await rig.write(put('a'), vip('10.192.0.2', 'a'), put('careful', { onStale: 'refuse' }), vip('10.192.0.3', 'careful'));
  await rig.start();
  await rig.clock.advance(20_000);
  rig.log.down();
  rig.clock.setWall(rig.clock.now() + 3_600_000);
  await rig.restart();
  const { dataPlane, l4 } = l4On(rig);
  await l4.start(options.signal);
  await rig.clock.advance(0);
  expect(dataPlane.dump()).toContain(refusing);
  expect(dataPlane.dump()).toContain('default/a/http 10.192.0.2:80');
  await l4.stop(options.signal);
  await rig.consumer.stop(options.signal);
});
