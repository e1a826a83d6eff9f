import { describe, expect, test } from 'vitest';
import type { Sysctls } from '../../src/ports/dataplane/sysctls.js';

const options = { signal: new AbortController().signal };
const FORWARD = 'net.ipv4.ip_forward';
const BRIDGE = 'net.bridge.bridge-nf-call-iptables';

export interface SysctlsUnderTest {
  /** Each time another process, on the same kernel. */
  readonly open: () => Sysctls;
  /** Somebody else sets it. */
  readonly reset: (name: string, value: string) => Promise<void>;
}

/** Every Sysctls must pass. `make` gives a kernel with exactly these. */
export function sysctlsContract(
  name: string,
  make: (values: Readonly<Record<string, string>>) => Promise<SysctlsUnderTest>,
): void {
  describe(`Sysctls: ${name}`, () => {
    const values = async (sysctls: Sysctls) => Object.fromEntries(await sysctls.read([FORWARD, BRIDGE], options));

    test('reads what the kernel has', async () => {
      const { open } = await make({ [FORWARD]: '0' });
      expect(await values(open())).toEqual({ [FORWARD]: '0' });
    });

    test('sets, and restores what was before the first time, in another process', async () => {
      const { open, reset } = await make({ [FORWARD]: '0', [BRIDGE]: '1' });
      await open().set(
        new Map([
          [FORWARD, '1'],
          [BRIDGE, '1'],
        ]),
        options,
      );
      expect(await values(open())).toEqual({ [FORWARD]: '1', [BRIDGE]: '1' });
      await reset(FORWARD, '2');
      await open().set(new Map([[FORWARD, '1']]), options);
      await open().restore(options);
      expect(await values(open())).toEqual({ [FORWARD]: '0', [BRIDGE]: '1' });
      await reset(FORWARD, '1');
      await open().restore(options);
      expect(await values(open())).toEqual({ [FORWARD]: '1', [BRIDGE]: '1' });
    });

    test('leaves alone what somebody has changed since, and what stood so before', async () => {
      const { open, reset } = await make({ [FORWARD]: '0', [BRIDGE]: '1' });
      await open().set(
        new Map([
          [FORWARD, '1'],
          [BRIDGE, '1'],
        ]),
        options,
      );
      await reset(FORWARD, '2');
      await reset(BRIDGE, '0');
      await open().restore(options);
      expect(await values(open())).toEqual({ [FORWARD]: '2', [BRIDGE]: '0' });
    });

    test('what the kernel does not have is refused, and an aborted call changes nothing', async () => {
      const { open } = await make({ [FORWARD]: '0' });
      await expect(open().set(new Map([[BRIDGE, '1']]), options)).rejects.toMatchObject({ code: 'dataplane.sysctl_not_set' });
      await expect(open().set(new Map([[FORWARD, '1']]), { signal: AbortSignal.abort() })).rejects.toThrow();
      expect(await values(open())).toEqual({ [FORWARD]: '0' });
    });
  });
}
