import { describe, expect, test } from 'vitest';
import type { NodeName } from '../../../src/domain/identity/model.js';
import type { Aid, RegistrationId } from '../../../src/domain/link/model.js';
import { formatNodeInfo, type NodeInfo, nodeInfoKey } from '../../../src/domain/node/model.js';
import type { PeerNode } from '../../../src/ports/driving/node-streams.js';
import { fleetRig, n1, n2, options, settle, tagOf } from '../../support/fleet-rig.js';

describe('the nodes of the fleet', () => {
  test('are all that have registered, there or not', async () => {
    const { registrations, connect, nodes, send, clock } = await fleetRig();
    registrations.register(n2);
    registrations.register(n1);
    await clock.advance(30_001);
    const { beat } = await connect();
    await beat('b', { status: 'ready', version: '1.2.3' });
    await send({ nid: n2 });
    expect(await nodes.list(options)).toMatchObject([
      {
        ...{ nid: 'n1', aid: 'acme', os: 'debian-12', state: 'online', status: 'ready', version: '1.2.3', server: 's1' },
        ...{ address: '192.0.2.1:4000', lastSeen: clock.now(), cordoned: false, unanswered: 0, problem: '' },
      },
      { nid: 'n2', state: 'offline', lastSeen: undefined, status: '', unanswered: 1 },
    ]);
  });

  test('say what they are, under the name that they have in the log, until they are removed', async () => {
    const { registrations, nodes, names, cluster, log } = await fleetRig();
    registrations.register(n1);
    const name = 'web-1' as NodeName;
    await names.bind(
      { identity: { role: 'node', nid: n1, aid: 'acme' as Aid, registration: 'r1' as RegistrationId } } as PeerNode,
      name,
      options,
    );
    expect(await nodes.list(options)).toMatchObject([{ nid: 'n1', name: 'web-1', info: undefined }]);
    const info: NodeInfo = {
      ...{ hostname: 'h', architecture: 'x64', addresses: [], cpu: { count: 2 }, versions: {}, version: '1' },
      ...{ labels: {}, subsystems: {} },
    };
    const change = { key: nodeInfoKey(name), value: formatNodeInfo(info) };
    cluster.write(change);
    await log.propose({ changes: [change], preconditions: [] }, options);
    expect(await nodes.list(options)).toMatchObject([{ nid: 'n1', name: 'web-1', info }]);
    await nodes.remove(n1, options);
    expect((await log.snapshot('', options)).items).toEqual([]);
  });

  test('cordon and uncordon, twice as well as once, known to every replica', async () => {
    const { registrations, nodes, store } = await fleetRig();
    registrations.register(n1);
    const other = await fleetRig({ server: 's2', store, registrations });
    const cordoned = async () => (await other.nodes.list(options)).map((node) => node.cordoned);
    for (const wanted of [true, true, false, false]) {
      await nodes.cordon(n1, wanted, options);
      await settle();
      expect(await cordoned()).toEqual([wanted]);
    }
    await expect(nodes.cordon(n2, true, options)).rejects.toMatchObject({ code: 'fleet.unknown_node' });
  });

  test('one that is removed is disconnected, and nothing of it stays but what it has finished', async () => {
    const { registrations, nodes, connect, send, store, instructions, clock } = await fleetRig();
    registrations.register(n1);
    const { stream, say } = await connect();
    for (const tag of ['done', 'sent']) await send({ tag: tagOf(tag) });
    await settle();
    await say('NODE_STATUS', 'done');
    await nodes.cordon(n1, true, options);
    await send({ tag: tagOf('waiting') });
    await clock.advance(5_000);
    await nodes.remove(n1, options);
    expect(stream.ended?.status).toBe('revoked');
    expect(await nodes.list(options)).toEqual([]);
    const states = (await instructions.list({}, options)).map(({ tag, state, reason }) => `${tag} ${state} ${reason}`.trim());
    expect(states).toEqual(['done done', 'sent unknown the node was removed', 'waiting cancelled the node was removed']);
    for (const prefix of ['epoch/', 'cordon/', 'presence/node/']) expect(store.dump(prefix)).toBe('');
    await expect(nodes.remove(n1, options)).rejects.toMatchObject({ code: 'fleet.unknown_node' });
  });

  test('a removal that failed half-way goes on when it is repeated', async () => {
    const { registrations, nodes, connect, store } = await fleetRig();
    registrations.register(n1);
    await connect();
    store.failNext();
    await expect(nodes.remove(n1, options)).rejects.toMatchObject({ code: 'store.unavailable' });
    await nodes.remove(n1, options);
    expect(store.dump('epoch/')).toBe('');
  });
});
