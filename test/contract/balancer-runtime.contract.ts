import { describe, expect, test } from 'vitest';
import type { IpAddress } from '../../src/domain/kernel/network.js';
import { serverName } from '../../src/domain/loadbalancer/model.js';
import type { BalancerRuntime } from '../../src/ports/loadbalancer/balancer-runtime.js';

const options = { signal: new AbortController().signal };
const refused = expect.objectContaining({ code: 'loadbalancer.not_changed' });

export interface BalancerRuntimeRig {
  readonly runtime: BalancerRuntime;
  /** HAProxy runs with these endpoints, as api-1, api-2 … */
  readonly start: (...endpoints: readonly string[]) => Promise<void>;
  readonly reload: () => Promise<void>;
  readonly kill: () => Promise<void>;
}

/** Every BalancerRuntime must pass. */
export function balancerRuntimeContract(name: string, make: () => Promise<BalancerRuntimeRig>): void {
  const seen = async (runtime: BalancerRuntime) =>
    (await runtime.observe(options))?.servers
      .map(({ name: server, host, address, port, admin, isChecked }) =>
        [server, host || address, port, admin, isChecked ? 'checked' : 'unchecked'].join(' '),
      )
      .toSorted();

  describe(`BalancerRuntime: ${name}`, () => {
    test('HAProxy is seen while it runs, and each reload is another worker', async () => {
      const { runtime, start, reload, kill } = await make();
      expect(await runtime.observe(options)).toBeUndefined();
      await start('127.0.0.1:7443', '[::1]:7444');
      const first = await runtime.observe(options);
      expect(first?.description).toMatch(/^holdfast [0-9a-f]{16}$/);
      expect(await seen(runtime)).toEqual(['api-1 127.0.0.1 7443 ready checked', 'api-2 ::1 7444 ready checked']);
      await reload();
      const second = await runtime.observe(options);
      expect(second?.description).toBe(first?.description);
      expect(second?.pid).not.toBe(first?.pid);
      await kill();
      expect(await runtime.observe(options)).toBeUndefined();
      await expect(runtime.change({ do: 'drain', name: 'api-1' }, options)).rejects.toEqual(refused);
    });

    test('a server comes and goes without another worker', async () => {
      const { runtime, start } = await make();
      await start('127.0.0.1:7443');
      const before = await runtime.observe(options);
      const name = serverName(5);
      await runtime.change({ do: 'add', name, address: 'fd00::5' as IpAddress, port: 6_443 }, options);
      expect((await seen(runtime))?.at(-1)).toBe('api-5 fd00::5 6443 maint unchecked');
      for (let time = 0; time < 2; time++) {
        await runtime.change({ do: 'ready', name }, options);
        expect((await seen(runtime))?.at(-1)).toBe('api-5 fd00::5 6443 ready checked');
      }
      await runtime.change({ do: 'drain', name }, options);
      expect((await seen(runtime))?.at(-1)).toBe('api-5 fd00::5 6443 drain checked');
      await runtime.change({ do: 'remove', name }, options);
      await runtime.change({ do: 'drain', name: 'api-1' }, options);
      await runtime.change({ do: 'remove', name: 'api-1' }, options);
      expect(await seen(runtime)).toEqual([]);
      expect((await runtime.observe(options))?.pid).toBe(before?.pid);
    });

    test('what cannot be is refused', async () => {
      const { runtime, start } = await make();
      await start('127.0.0.1:7443');
      const again = { do: 'add', name: serverName(1), address: '10.0.0.1' as IpAddress, port: 6_443 } as const;
      await expect(runtime.change(again, options)).rejects.toEqual(refused);
      for (const step of ['ready', 'drain', 'remove'] as const) {
        await expect(runtime.change({ do: step, name: 'api-7' }, options)).rejects.toEqual(refused);
      }
      expect(await seen(runtime)).toEqual(['api-1 127.0.0.1 7443 ready checked']);
    });

    test('aborted calls reject', async () => {
      const { runtime, start } = await make();
      await start('127.0.0.1:7443');
      const aborted = { signal: AbortSignal.abort() };
      await expect(runtime.observe(aborted)).rejects.toThrow();
      await expect(runtime.change({ do: 'drain', name: 'api-1' }, aborted)).rejects.toThrow();
      expect(await seen(runtime)).toEqual(['api-1 127.0.0.1 7443 ready checked']);
    });
  });
}
