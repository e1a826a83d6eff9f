import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { HealthProber, ProbeTarget } from '../../src/ports/dataplane/health-prober.js';

/** Endpoints to be asked: one that is well, one where nothing listens, and one that never answers. */
export interface ProbedWorld {
  readonly prober: HealthProber;
  readonly well: ProbeTarget;
  readonly dead: ProbeTarget;
  readonly silent: ProbeTarget;
  close(): Promise<void>;
}

const never = new AbortController().signal;

export function healthProberContract(name: string, make: () => Promise<ProbedWorld>): void {
  describe(`${name}: HealthProber`, () => {
    let world: ProbedWorld;
    beforeEach(async () => {
      world = await make();
    });
    afterEach(() => world.close());

    test('an endpoint that is well', async () => {
      const result = await world.prober.probe(world.well, { signal: never });
      expect(result).toEqual({ ok: true, reason: '', latencyMs: expect.any(Number) });
      expect(result.latencyMs).toBeGreaterThanOrEqual(0);
    });

    test('where nothing listens is a result with a reason', async () => {
      const result = await world.prober.probe(world.dead, { signal: never });
      expect(result).toEqual({ ok: false, reason: expect.stringMatching(/^[ -~]{1,100}$/), latencyMs: expect.any(Number) });
    });

    test('an abort ends a check that gets no answer, with its own reason', async () => {
      const abort = new AbortController();
      const reason = new Error('enough');
      const result = world.prober.probe(world.silent, { signal: abort.signal });
      setImmediate(() => abort.abort(reason));
      await expect(result).rejects.toBe(reason);
    });

    test('an abort before the call', async () => {
      const reason = new Error('never mind');
      await expect(world.prober.probe(world.well, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    });

    test('checks do not wait for each other', async () => {
      const abort = new AbortController();
      const hanging = world.prober.probe(world.silent, { signal: abort.signal }).catch(() => 'aborted');
      const results = await Promise.all([1, 2, 3].map(() => world.prober.probe(world.well, { signal: never })));
      expect(results.map(({ ok }) => ok)).toEqual([true, true, true]);
      abort.abort();
      expect(await hanging).toBe('aborted');
    });
  });
}
