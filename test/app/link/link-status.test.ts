import { describe, expect, test } from 'vitest';
import { linkStatus } from '../../../src/app/link/link-status.js';
import type { LinkState } from '../../../src/app/link/link-subsystem.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { epoch } from '../../../src/domain/link/model.js';

const clock = { monotonic: () => 10_000 };
const nothing = { connected: undefined, lastError: undefined, lostSince: undefined, nextAttemptAt: undefined };
const down: LinkState = {
  ...{ ...nothing, streams: 0 },
  dropped: { lateAnswers: 0, strayAnswers: 0, oldEpochs: 0, afterDraining: 0, unclaimed: 0 },
};
const server = { fleet: 'f1', server: 's1', epoch: epoch(7n), capabilities: new Set<never>(), spreadMs: 0, window: 1 };
const connected = {
  ...{ since: 5, server, skewMs: -3, supersededBy: undefined },
  address: { host: 'cp', port: 9192 },
  lastBeat: { sentAt: 7_000, answeredAt: 8_500 },
};

describe('the link as status shows it', () => {
  test('up', () => {
    expect(linkStatus({ ...down, connected }, clock)).toEqual({
      ...{ lostSince: undefined, nextAttemptAt: undefined, lastError: undefined },
      connected: { since: 5, address: 'cp:9192', server: { id: 's1', fleet: 'f1', epoch: 7n }, skewMs: -3, beatMs: 1_500 },
    });
  });

  test('with an older server by IPv6, before the first beat', () => {
    const old = { ...connected, server: undefined, skewMs: undefined, lastBeat: undefined, address: { host: '::1', port: 1 } };
    expect(linkStatus({ ...down, connected: old }, clock).connected).toEqual({
      ...{ since: 5, address: '[::1]:1', server: undefined, skewMs: undefined, beatMs: undefined },
    });
  });

  test('down, and why, with what made it so, each sentence once', () => {
    const refused = new Error('connect ECONNREFUSED 127.0.0.1:1');
    const error = new AgentError('link.unreachable', { problem: 'cp:9192 does not answer' }, { cause: refused });
    const state = { ...down, lostSince: 1, nextAttemptAt: 20_000, lastError: { error, at: 9 } };
    expect(linkStatus(state, clock)).toEqual({
      ...{ connected: undefined, lostSince: 1, nextAttemptAt: 20_000 },
      lastError: { message: 'cp:9192 does not answer: connect ECONNREFUSED 127.0.0.1:1', at: 9 },
    });
    const repeated = new Error('failed: because', { cause: new Error('because') });
    expect(linkStatus({ ...state, lastError: { error: repeated, at: 9 } }, clock).lastError?.message).toBe('failed: because');
  });

  test('a chain of causes that never ends is cut', () => {
    const error = new Error('a');
    error.cause = new Error('b', {
      cause: new Error('c', { cause: new Error('d', { cause: new Error('e', { cause: error }) }) }),
    });
    expect(linkStatus({ ...down, lastError: { error, at: 1 } }, clock).lastError?.message).toBe('a: b: c: d');
    const circle = new Error('x');
    circle.cause = circle;
    expect(linkStatus({ ...down, lastError: { error: circle, at: 1 } }, clock).lastError?.message).toBe('x');
  });
});
