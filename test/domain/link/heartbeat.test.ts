import { describe, expect, test } from 'vitest';
import {
  type Heartbeat,
  heartbeatAnswer,
  heartbeatMessage,
  readHeartbeat,
  readHeartbeatAnswer,
} from '../../../src/domain/link/heartbeat.js';
import { rolesOf } from '../../../src/domain/link/roles.js';

const digest = 'ab'.repeat(32);
const beat: Heartbeat = {
  externalIpAddress: '10.0.0.1',
  isCp: true,
  isWorker: false,
  status: 'ready',
  version: '1.2.3',
  rolesKnown: true,
  capabilities: new Set(['journal', 'cancel']),
  auditHead: { sequence: 12n, digest },
  journal: { id: 'j1', counter: 2n ** 60n },
};
const b64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64');
const parsed = (text: string): unknown => JSON.parse(Buffer.from(text, 'base64').toString());

describe('a heartbeat', () => {
  test('has these keys', () => {
    const message = heartbeatMessage(beat, 'tag');
    expect([message.type, message.tag]).toEqual(['NodeAgentHeartbeatToServer', 'tag']);
    expect(parsed(message.jsonB64)).toEqual({
      externalIpAddress: '10.0.0.1',
      isCp: true,
      isWorker: false,
      status: 'ready',
      version: '1.2.3',
      rolesKnown: true,
      capabilities: ['journal', 'cancel'],
      auditHead: { sequence: 12, digest },
      journal: { id: 'j1', counter: '1152921504606846976' },
    });
  });

  test.each([beat, { ...beat, auditHead: undefined, journal: undefined, capabilities: new Set<never>() }])(
    'is read back',
    (said) => expect(readHeartbeat(heartbeatMessage(said, 't').jsonB64)).toEqual(said),
  );

  test('of an older agent: what it does not say has its zero, and its roles are known', () => {
    expect(readHeartbeat(b64({ externalIpAddress: '10.0.0.2', isWorker: true, status: 'ready', version: '1.0' }))).toEqual({
      externalIpAddress: '10.0.0.2',
      isCp: false,
      isWorker: true,
      status: 'ready',
      version: '1.0',
      rolesKnown: true,
      capabilities: new Set(),
      auditHead: undefined,
      journal: undefined,
    });
  });

  test('what is of another type is as if absent', () => {
    const odd = {
      externalIpAddress: 5,
      isCp: 'yes',
      status: 'happy',
      version: {},
      rolesKnown: false,
      capabilities: ['journal', 7, 'teleport'],
      auditHead: { sequence: -1, digest: 'short' },
      journal: { id: 'a:b', counter: '1' },
    };
    expect(readHeartbeat(b64(odd))).toEqual({
      externalIpAddress: '',
      isCp: false,
      isWorker: false,
      status: 'unknown',
      version: '',
      rolesKnown: false,
      capabilities: new Set(['journal']),
      auditHead: undefined,
      journal: undefined,
    });
  });

  test.each([7, 'j1', { id: 'j1' }, { id: '', counter: '1' }, { id: 'j1', counter: 1 }, { id: 'j1', counter: '-1' }])(
    'A12: %j is no journal',
    (journal) => expect(readHeartbeat(b64({ journal }))?.journal).toBeUndefined(),
  );

  test.each(['', 'plain text', b64([]), b64(null), b64('text'), 'A'.repeat(400_000)])('%.20s is none', (text) => {
    expect(readHeartbeat(text)).toBeUndefined();
    expect(readHeartbeatAnswer(text)).toBeUndefined();
  });

  test('its answer', () => {
    const answer = heartbeatAnswer({ isHealthy: true, message: 'ok' }, 'tag');
    expect(parsed(answer.jsonB64)).toEqual({ isHealthy: true, message: 'ok' });
    expect(readHeartbeatAnswer(answer.jsonB64)).toEqual({ isHealthy: true, message: 'ok' });
    expect(readHeartbeatAnswer(b64({}))).toEqual({ isHealthy: false, message: '' });
    const root = 'a1'.repeat(32);
    expect(readHeartbeatAnswer(heartbeatAnswer({ isHealthy: true, message: '', root }, 'tag').jsonB64)?.root).toBe(root);
    expect(readHeartbeatAnswer(b64({ root: 'short' }))?.root).toBeUndefined();
  });
});

describe('roles of a Kubernetes node', () => {
  const ready = (status: string) => ({
    conditions: [
      { type: 'MemoryPressure', status: 'False' },
      { type: 'Ready', status },
    ],
  });
  const tainted = { taints: [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }] };
  test.each([
    { name: 'a worker', node: { status: ready('True') }, isCp: false, roles: { isCp: false, isWorker: true, status: 'ready' } },
    {
      name: 'not ready',
      node: { status: ready('False') },
      isCp: false,
      roles: { isCp: false, isWorker: true, status: 'not_ready' },
    },
    {
      name: 'not heard of',
      node: { status: ready('Unknown') },
      isCp: false,
      roles: { isCp: false, isWorker: true, status: 'unknown' },
    },
    { name: 'no condition', node: {}, isCp: false, roles: { isCp: false, isWorker: true, status: 'unknown' } },
    {
      name: 'cordoned',
      node: { spec: { unschedulable: true }, status: ready('True') },
      isCp: false,
      roles: { isCp: false, isWorker: true, status: 'cordoned' },
    },
    {
      name: 'a control plane',
      node: { spec: tainted, status: ready('True') },
      isCp: true,
      roles: { isCp: true, isWorker: false, status: 'ready' },
    },
    {
      name: 'a control plane that works too',
      node: { spec: { taints: [] }, status: ready('True') },
      isCp: true,
      roles: { isCp: true, isWorker: true, status: 'ready' },
    },
    {
      name: 'garbage',
      node: { spec: { taints: 'x' }, status: { conditions: [null, 3] } },
      isCp: true,
      roles: { isCp: true, isWorker: true, status: 'unknown' },
    },
  ])('$name', ({ node, isCp, roles }) => expect(rolesOf(node, isCp)).toEqual(roles));
});
