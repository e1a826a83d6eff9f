import { expect, test } from 'vitest';
import { ipAddress } from '../../../src/domain/kernel/network.js';
import type { RunningServer } from '../../../src/domain/loadbalancer/model.js';
import { nameServers } from '../../../src/domain/loadbalancer/names.js';
import { DRAIN_SECONDS, planServing } from '../../../src/domain/loadbalancer/plan.js';
import { endpoint } from '../../support/endpoint.js';

const wanted = (...list: readonly string[]) => ({ servers: nameServers(list.map(endpoint), [], []), description: 'd' });
const at = (last: number, change: Partial<RunningServer> = {}): RunningServer => ({
  ...{ name: `api-${last}`, address: ipAddress(`10.0.0.${last}`), port: 6_443, host: '', admin: 'ready', isChecked: true },
  ...{ isUp: true, sessions: 0, changedSeconds: 0 },
  ...change,
});
const plan = (list: readonly string[], servers: readonly RunningServer[]) =>
  planServing(wanted(...list), true, { pid: 7, description: 'd', servers });

test.each([
  ['as it is', ['10.0.0.1', '10.0.0.2'], [at(1), at(2)], []],
  ['down is as it is', ['10.0.0.1'], [at(1, { isUp: false })], []],
  ['one is added', ['10.0.0.1', '10.0.0.2'], [at(1)], ['add api-2 10.0.0.2:6443', 'ready api-2']],
  ['added, and not ready yet', ['10.0.0.1'], [at(1, { admin: 'maint', isChecked: false })], ['ready api-1']],
  ['not checked', ['10.0.0.1'], [at(1, { isChecked: false })], ['ready api-1']],
  ['back in the list while it drains', ['10.0.0.1'], [at(1, { admin: 'drain' })], ['ready api-1']],
  ['one has left', ['10.0.0.1'], [at(1), at(2, { sessions: 3 })], ['drain api-2']],
  ['it still drains', ['10.0.0.1'], [at(1), at(2, { admin: 'drain', sessions: 1 })], []],
  ['it has drained', ['10.0.0.1'], [at(1), at(2, { admin: 'drain' })], ['remove api-2']],
  [
    'it drains for an hour',
    ['10.0.0.1'],
    [at(1), at(2, { admin: 'drain', sessions: 1, changedSeconds: DRAIN_SECONDS })],
    ['remove api-2'],
  ],
  ['its last connections are being ended', ['10.0.0.1'], [at(1), at(2, { admin: 'maint', sessions: 1 })], []],
  ['they have ended', ['10.0.0.1'], [at(1), at(2, { admin: 'maint' })], ['remove api-2']],
  ['added by hand', ['10.0.0.1'], [at(1), at(9, { name: 'mine' })], ['drain mine']],
])('%s', (_, list, servers, steps) => {
  const planned = plan(list, servers);
  const shown = planned.do === 'change' ? planned.steps : [];
  expect(planned.do).toBe('change');
  expect(
    shown.map((step) => (step.do === 'add' ? `add ${step.name} ${step.address}:${step.port}` : `${step.do} ${step.name}`)),
  ).toEqual(steps);
});

test('what does not run is started, and what the runtime API cannot do is a reload', () => {
  const running = { pid: 7, description: 'd', servers: [at(1)] };
  expect(planServing(wanted('10.0.0.1'), false, running)).toEqual({ do: 'start' });
  const because = (...given: Parameters<typeof planServing>) => {
    const planned = planServing(...given);
    return planned.do === 'reload' ? planned.because : planned.do;
  };
  expect(because(wanted('10.0.0.1'), true, undefined)).toBe('its runtime API does not answer');
  expect(because(wanted('10.0.0.1'), true, { ...running, description: '' })).toBe('it runs another configuration');
  expect(because(wanted('cp.example'), true, { ...running, servers: [] })).toBe('cp.example is a name');
  expect(because(wanted('10.0.0.2'), true, running)).toBe('api-1 is somewhere else');
  expect(because(wanted('10.0.0.1:7443'), true, running)).toBe('api-1 is somewhere else');
  const byName = { ...running, servers: [at(1, { host: 'cp.example' })] };
  expect(because(wanted('cp.example'), true, byName)).toBe('change');
  expect(because(wanted('10.0.0.1'), true, byName)).toBe('api-1 is somewhere else');
});
