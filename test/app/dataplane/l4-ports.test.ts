import { describe, expect, test } from 'vitest';
import { FakeListenPortMemory } from '../../fakes/fake-listen-port-memory.js';
import { id, l4Rig as setUp } from '../../support/l4-rig.js';
import { options, serviceDocument } from '../../support/resource-rig.js';

const { signal } = options;

describe('ports in dev mode', () => {
  test('move from 80 to 8080 to a free one, and are remembered', async () => {
    const { l4, apply, dataPlane, memory } = await setUp({ dev: true });
    dataPlane.occupy('10.192.0.2:80', 'permission_denied');
    dataPlane.occupy('10.192.0.3:80');
    dataPlane.occupy('10.192.0.3:8080');
    await l4.start(signal);
    await apply(serviceDocument('a'), serviceDocument('b'), serviceDocument('c'));
    expect(['a', 'b', 'c'].map((name) => l4.stateOf(id(name)))).toEqual([
      { state: 'listening', port: 8080 },
      { state: 'listening', port: 40_000 },
      { state: 'listening', port: 80 },
    ]);
    expect(memory.dump()).toBe('default/a/http 8080\ndefault/b/http 40000');
    await apply(serviceDocument('a', { endpoints: [{ address: '127.0.0.1' }] }));
    expect(dataPlane.deltas.at(-1)).toBe('+default/a/http:8080');
    await l4.stop(signal);
  });

  test('are had again after a restart, also when the service port is free by then', async () => {
    const first = await setUp({
      dev: true,
      memory: new FakeListenPortMemory({ 'default/a/http': 8_081, 'default/gone/http': 1 }),
    });
    await first.apply(serviceDocument('a'));
    await first.l4.start(signal);
    await first.clock.advance(0);
    expect(first.l4.stateOf(id('a'))).toEqual({ state: 'listening', port: 8_081 });
    expect(first.memory.dump()).toBe('default/a/http 8081');
    await first.l4.stop(signal);
    expect(first.memory.dump()).toBe('default/a/http 8081');
  });

  test('a remembered port that is taken gives way', async () => {
    const { l4, apply, dataPlane, memory } = await setUp({
      dev: true,
      memory: new FakeListenPortMemory({ 'default/a/http': 8_081 }),
    });
    dataPlane.occupy('10.192.0.2:8081');
    await apply(serviceDocument('a'));
    await l4.start(signal);
    await l4.ready(signal);
    expect([l4.stateOf(id('a')), memory.dump()]).toEqual([{ state: 'listening', port: 80 }, '']);
    await l4.stop(signal);
  });

  test('a new service port begins anew; a deleted service is forgotten', async () => {
    const { l4, apply, remove, dataPlane, memory } = await setUp({ dev: true });
    dataPlane.occupy('10.192.0.2:80');
    await l4.start(signal);
    await apply(serviceDocument('a'));
    await apply(serviceDocument('a', { ports: [{ name: 'http', port: 81 }] }));
    expect([l4.stateOf(id('a')), memory.dump()]).toEqual([{ state: 'listening', port: 81 }, '']);
    await apply(serviceDocument('a'));
    expect(memory.dump()).toBe('default/a/http 8080');
    await remove('a');
    expect([l4.stateOf(id('a')), memory.dump()]).toEqual([{ state: 'pending' }, '']);
    await l4.stop(signal);
  });

  test('a stop before the log was read forgets nothing', async () => {
    const memory = new FakeListenPortMemory({ 'default/a/http': 8_081 });
    const { l4 } = await setUp({ dev: true, memory, following: false });
    await l4.start(signal);
    await l4.stop(signal);
    expect(memory.dump()).toBe('default/a/http 8081');
  });

  test('a memory that cannot be written is told, tried again at the next change, and stops nothing', async () => {
    const { l4, apply, dataPlane, memory, logger } = await setUp({ dev: true });
    dataPlane.occupy('10.192.0.2:80');
    memory.failNext(new Error('disk full'));
    await l4.start(signal);
    await apply(serviceDocument('a'));
    expect([logger.dump('warn'), memory.dump()]).toEqual(['warn the chosen ports could not be remembered', '']);
    await apply(serviceDocument('b'));
    expect(memory.dump()).toBe('default/a/http 8080');
    await l4.stop(signal);
  });
});
