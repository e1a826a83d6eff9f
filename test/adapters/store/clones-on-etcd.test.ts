import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { EtcdControlStore } from '../../../src/adapters/store/etcd-control-store.js';
import { EtcdRig, hasEtcd } from '../../support/etcd-rig.js';
import { agentFacts, fleetOn, n1, options } from '../../support/fleet-rig.js';

describe.skipIf(!hasEtcd)('B4: two machines with one certificate at two replicas on a real etcd', () => {
  let etcd: EtcdRig;
  beforeAll(async () => {
    etcd = await EtcdRig.start();
  });
  afterAll(() => etcd.stop());

  const clone = agentFacts({ instance: 'i9', boot: 'b9', hardware: 'h9' });

  /** Two replicas on one prefix, and the stream at the first, which beats four times a second. */
  async function replicas(prefix: string) {
    const clock = new SystemClock();
    const replica = async (server: string) => {
      const store = new EtcdControlStore({ client: etcd.client(), prefix, clock });
      await store.open(options);
      onTestFinished(() => store.close());
      return fleetOn(store, clock, { server });
    };
    const [a, b] = [await replica('s1'), await replica('s2')];
    return { a, b };
  }

  function beating({ beat }: { readonly beat: () => Promise<void> }): void {
    const timer = setInterval(() => void beat(), 250);
    onTestFinished(() => clearInterval(timer));
  }

  test('the clone is turned away where it comes, and the registered one goes on where it is', async () => {
    const { a, b } = await replicas('/clones/1/');
    const own = await a.connect();
    beating(own);
    await expect(b.connect({ agent: clone, address: '198.51.100.7:1' })).rejects.toMatchObject({ code: 'link.refused' });
    expect([own.stream.ended, a.sessions.get(n1)?.epoch, b.sessions.get(n1)]).toEqual([undefined, 1n, undefined]);
    expect(a.presence.get(n1)?.problem).toMatch(/^DUPLICATE_NODE: 198\.51\.100\.7:1 was turned away/);
  });

  test('the registered one takes the place of the clone, which is told for how long to stay away', async () => {
    const { a, b } = await replicas('/clones/2/');
    await (await a.connect()).close();
    const copy = await a.connect({ agent: clone, address: '198.51.100.7:1' });
    beating(copy);
    const real = await b.connect({ agent: agentFacts({ instance: 'i2' }) });
    expect(real.facts.epoch).toBe(3n);
    expect(copy.stream.ended).toMatchObject({ status: 'duplicate', retryMs: 300_000 });
    beating(real);
    await expect(a.connect({ agent: clone, address: '198.51.100.7:1' })).rejects.toMatchObject({ code: 'link.refused' });
  }, 30_000);
});
