import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  FLAPPING,
  formatHealthRecord,
  type HealthState,
  healthKey,
  healthOfKey,
  MOST_CHANGES,
  observe,
  resumed,
  type Thresholds,
  UNKNOWN,
  type Verdict,
  WINDOW_MS,
} from '../../../src/domain/dataplane/health.js';
import { logKey } from '../../../src/domain/log/model.js';
import { qualifiedName } from '../../../src/domain/resource/model.js';

const WALL = 1_700_000_000_000;
const usual: Thresholds = { rise: 2, fall: 3 };

/** The states after each check of `text`, one every `intervalMs`: `+` succeeded, `-` failed. */
function run(text: string, { start = UNKNOWN, intervalMs = 10_000, thresholds = usual, from = 0 } = {}): readonly HealthState[] {
  let state = start;
  return [...text].map((char, index) => {
    const monotonic = from + index * intervalMs;
    state = observe(state, { ok: char === '+', reason: `failed ${index}` }, thresholds, { monotonic, wall: WALL + monotonic });
    return state;
  });
}

/** The verdict after each check: `?` none, `H` healthy, `U` unhealthy, `F` held. */
function verdicts(states: readonly HealthState[]): string {
  return states
    .map(({ verdict }) => {
      if (verdict === undefined) return '?';
      if (verdict.reason === FLAPPING) return 'F';
      return verdict.healthy ? 'H' : 'U';
    })
    .join('');
}

describe('rise and fall', () => {
  test.each<{ name: string; checks: string; expected: string; start?: HealthState; thresholds?: Thresholds }>([
    { name: 'the first success is a verdict', checks: '+', expected: 'H' },
    { name: 'fall failures in a row make the first one', checks: '--+', expected: '??H' },
    { name: 'fall failures in a row', checks: '+---', expected: 'HHHU' },
    { name: 'a success between them begins anew', checks: '+--+--+', expected: 'HHHHHHH' },
    { name: 'unhealthy from the start', checks: '---', expected: '??U' },
    { name: 'rise successes in a row', checks: '---+-++', expected: '??UUUUH' },
    { name: 'thresholds of one', checks: '+-+-', expected: 'HUHU', thresholds: { rise: 1, fall: 1 } },
    {
      name: 'unhealthy before a restart stays it until it has risen',
      checks: '++',
      expected: 'UH',
      start: resumed({ healthy: false, reason: 'refused', since: 1 }),
    },
    {
      name: 'healthy before a restart stays it until it has fallen',
      checks: '---',
      expected: 'HHU',
      start: resumed({ healthy: true, reason: '', since: 1 }),
    },
  ])('$name', ({ checks, expected, start, thresholds }) => {
    expect(verdicts(run(checks, { ...(start && { start }), ...(thresholds && { thresholds }) }))).toBe(expected);
  });

  test('a verdict says why and since when, and keeps that', () => {
    const states = run('+------');
    expect(states[3]?.verdict).toEqual({ healthy: false, reason: 'failed 3', since: WALL + 30_000 });
    expect(states[6]?.verdict).toBe(states[3]?.verdict);
    expect(run('+')[0]?.verdict).toEqual({ healthy: true, reason: '', since: WALL });
  });

  test('a verdict of before a restart keeps its time', () => {
    const [state] = run('-', { start: resumed({ healthy: false, reason: 'refused', since: 5 }) });
    expect(state?.verdict).toEqual({ healthy: false, reason: 'refused', since: 5 });
  });
});

describe('flapping', () => {
  const one: Thresholds = { rise: 1, fall: 1 };

  test('the sixth change within a minute is that it is held', () => {
    const states = run('+-+-+-+-+-', { thresholds: one, intervalMs: 1_000 });
    expect(verdicts(states)).toBe('HUHUHFFFFF');
    expect(states.at(-1)?.verdict).toEqual({ healthy: false, reason: FLAPPING, since: WALL + 5_000 });
  });

  test('changes that are further apart are no flapping', () => {
    expect(verdicts(run('+-+-+-+-+-+-', { thresholds: one, intervalMs: 12_000 }))).toBe('HUHUHUHUHUHU');
    expect(verdicts(run('+-+-+-+-', { thresholds: one, intervalMs: 11_999 }))).toBe('HUHUHFFF');
  });

  test.each([
    { name: 'healthy', calm: '+', expected: 'H', verdict: { healthy: true, reason: '', since: WALL + 66_000 } },
    { name: 'unhealthy', calm: '-', expected: 'U', verdict: { healthy: false, reason: 'failed 60', since: WALL + 66_000 } },
  ])('after a minute of calm it is $name', ({ calm, expected, verdict }) => {
    const restless = run('+-+-+-', { thresholds: one, intervalMs: 1_000 });
    const start = restless.at(-1) ?? UNKNOWN;
    const states = run(calm.repeat(61), { start, thresholds: one, intervalMs: 1_000, from: 6_000 });
    // Turning to healthy is unrest at 6 s; that it is unhealthy was found at 5 s.
    expect(verdicts(states)).toBe(calm === '+' ? `${'F'.repeat(60)}${expected}` : `${'F'.repeat(59)}${expected}${expected}`);
    expect(states.at(-1)?.verdict).toEqual(calm === '+' ? verdict : { ...verdict, reason: 'failed 59', since: WALL + 65_000 });
  });

  test('each turn meanwhile begins the minute anew', () => {
    const start = run('+-+-+-', { thresholds: one, intervalMs: 1_000 }).at(-1) ?? UNKNOWN;
    const states = run(`${'-'.repeat(40)}${'+'.repeat(61)}`, { start, thresholds: one, intervalMs: 1_000, from: 6_000 });
    expect(verdicts(states)).toBe(`${'F'.repeat(100)}H`);
  });

  test('law: at most six changes in any minute, and a verdict that is not held is what rise and fall say', () => {
    const checks = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 100, max: 20_000 })), { maxLength: 200, size: 'max' });
    const thresholds = fc.record({ rise: fc.integer({ min: 1, max: 3 }), fall: fc.integer({ min: 1, max: 3 }) });
    fc.assert(
      fc.property(checks, thresholds, (list, thresholds) => {
        let state = UNKNOWN;
        let before: Verdict | undefined;
        let monotonic = 0;
        const changes: number[] = [];
        for (const [ok, ms] of list) {
          monotonic += ms;
          state = observe(state, { ok, reason: 'no' }, thresholds, { monotonic, wall: monotonic });
          if (state.verdict !== before) changes.push(monotonic);
          before = state.verdict;
          if (state.unrestAt === undefined && state.verdict !== undefined) expect(state.verdict.healthy).toBe(state.found);
          if (state.unrestAt !== undefined) expect(state.verdict).toMatchObject({ healthy: false, reason: FLAPPING });
        }
        for (const [index, at] of changes.entries()) {
          const earlier = changes[index - MOST_CHANGES];
          if (earlier !== undefined) expect(at - earlier).toBeGreaterThanOrEqual(WINDOW_MS);
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe('in the log', () => {
  test.each(['10.0.0.1:80', '[::1]:80', '[::ffff:1.2.3.4]:65535'])('%s has a key that names it', (target) => {
    const service = qualifiedName('prod', 'web');
    expect(healthKey(service, target)).toBe(`health/prod/web/${target}`);
    expect(healthOfKey(healthKey(service, target))).toEqual({ service, target });
  });

  test.each(['service/default/a', 'vip/10.0.0.1', 'health/a', 'healthy/a/b/c'])('%s is none', (text) => {
    expect(healthOfKey(logKey(text))).toBeUndefined();
  });

  test('equal verdicts have equal text', () => {
    const record = { since: 1, reason: '', node: 'a' as never, healthy: true, revision: 7n };
    expect(formatHealthRecord(record)).toBe('{"healthy":true,"node":"a","reason":"","since":1}');
  });
});
