import { CallMeter } from '../../src/adapters/metrics/call-meter.js';
import type { ControlPlaneFigures, ListenerFigures } from '../../src/adapters/metrics/control-plane-metrics.js';
import type { FleetStatus } from '../../src/ports/driving/operations.js';
import { FakeClock } from '../fakes/fake-clock.js';

/** A control plane with something of everything, each number another one. */
export function controlPlaneFigures(): ControlPlaneFigures {
  const connections = { open: 41, accepted: 42, overflowed: 43, waitedTooLong: 44, timedOut: 45, failedHandshakes: 46 };
  const listeners = (['registration', 'nodes', 'admin'] as const).map(
    (listener): ListenerFigures => ({ listener, ...connections }),
  );
  return {
    tokens: { open: 1, used: 2, expired: 3 },
    enrolment: { registered: 4, refused: 5, limited: 6, failed: 7 },
    sessions: { opened: 8, heartbeats: 9, unclaimed: 10, superseded: 11, duplicates: 12 },
    results: { stored: 13, repeated: 14, stray: 15, lost: 16 },
    open: [{ type: 'RUN_REMOTE_SCRIPT', state: 'delivered', count: 17 }],
    oldestOpen: 18_000,
    ended: [{ type: 'other', ending: 'unknown', count: 19 }],
    listeners,
    refusals: { malformed: 20, limited: 21, certificate: 22 },
    proposalsLimited: 23,
  };
}

export function controlPlaneFleet(): FleetStatus {
  return {
    ...{ server: 's1', nodes: 63, online: 30, offline: 31, unknown: 2, unanswered: 17, links: 24, followers: 25 },
    replicas: [
      { id: 's1', silentMs: 0 },
      { id: 's2', silentMs: 1 },
    ],
    stores: [],
    certificates: [{ name: 'node root', expiresAt: 26_000 }],
  };
}

/** A store that has answered one call and has failed for 2 s. */
export async function failingStore() {
  const clock = new FakeClock();
  const meter = new CallMeter(['commit'], clock);
  const options = { signal: new AbortController().signal };
  await meter.measure('commit', options, async () => {});
  await meter.measure('commit', options, () => Promise.reject(new Error('no leader'))).catch(() => {});
  await clock.advance(2_000);
  return meter;
}
