import { describe, expect, test } from 'vitest';
import { formatNodeInfo } from '../../src/domain/node/model.js';
import { refuseNodeInfo } from '../../src/domain/node/schema.js';
import type { NodeProbe } from '../../src/ports/node/node-probe.js';

/** Every NodeProbe must pass. */
export function nodeProbeContract(name: string, make: () => NodeProbe): void {
  describe(`NodeProbe: ${name}`, () => {
    test('finds what can stand in a record, and the same when nothing has changed', async () => {
      const probe = make();
      const options = { signal: new AbortController().signal };
      const looks = await Promise.all([probe.look(options), probe.look(options)]);
      const [first, second] = looks.map((machine) => formatNodeInfo({ ...machine, version: '1', labels: {}, subsystems: {} }));
      expect(refuseNodeInfo(first ?? '')).toBeUndefined();
      expect(second).toBe(first);
    });

    test('rejects on abort', async () => {
      const signal = AbortSignal.abort(new Error('over'));
      await expect(make().look({ signal })).rejects.toThrow('over');
    });
  });
}
