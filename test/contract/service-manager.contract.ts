import { describe, expect, test } from 'vitest';
import type { ServiceManager } from '../../src/ports/instruction/service-manager.js';

const options = { signal: new AbortController().signal };

export interface ServiceManagerRig {
  readonly manager: ServiceManager;
  /** Seconds of the restart that is scheduled. */
  readonly scheduled: () => Promise<number | undefined>;
  /** From now on nobody runs the daemon as a service. */
  readonly remove: () => Promise<void>;
}

/** Every ServiceManager must pass. */
export function serviceManagerContract(name: string, make: () => Promise<ServiceManagerRig>): void {
  describe(`ServiceManager: ${name}`, () => {
    test('schedules a restart, once', async () => {
      const { manager, scheduled } = await make();
      await manager.check(options);
      expect(await scheduled()).toBeUndefined();
      await manager.restart(7, options);
      await manager.restart(9, options);
      expect(await scheduled()).toBe(7);
    });

    test('says so when nobody runs the daemon as a service', async () => {
      const { manager, scheduled, remove } = await make();
      await remove();
      const unmanaged = expect.objectContaining({ code: 'service.unmanaged' });
      await expect(manager.check(options)).rejects.toEqual(unmanaged);
      await expect(manager.restart(1, options)).rejects.toEqual(unmanaged);
      expect(await scheduled()).toBeUndefined();
    });

    test('aborted calls reject', async () => {
      const { manager, scheduled } = await make();
      await expect(manager.restart(1, { signal: AbortSignal.abort() })).rejects.toThrow();
      expect(await scheduled()).toBeUndefined();
    });
  });
}
