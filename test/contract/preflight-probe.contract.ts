import { describe, expect, test } from 'vitest';
import type { PreflightProbe } from '../../src/ports/preflight/preflight-probe.js';

const NOBODY = { role: 'worker', ranges: [] } as const;

/** @param make a probe of a machine of this name */
export function preflightProbeContract(name: string, make: (hostname: string) => Promise<PreflightProbe>): void {
  describe(`preflight probe: ${name}`, () => {
    const options = { signal: new AbortController().signal };

    test('says what the machine is', async () => {
      expect(await (await make('node-7')).look(NOBODY, options)).toMatchObject({ hostname: 'node-7', proxy: {} });
    });

    test('asks nobody over the network that is not named', async () => {
      const { lookup, way, serverClock, knownAnswer, udpEcho, answers } = await (await make('node-7')).look(NOBODY, options);
      expect([lookup, way, serverClock, knownAnswer, udpEcho]).toEqual(Array(5).fill(undefined));
      expect(answers ?? []).toEqual([]);
    });

    test('says the same to all who ask at once', async () => {
      const probe = await make('node-7');
      const [one, two] = await Promise.all([probe.look(NOBODY, options), probe.look(NOBODY, options)]);
      expect([one.hostname, two.hostname]).toEqual(['node-7', 'node-7']);
    });

    test('rejects on abort', async () => {
      const reason = new Error('enough');
      await expect((await make('node-7')).look(NOBODY, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    });
  });
}
