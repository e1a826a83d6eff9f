import { expect, test } from 'vitest';
import { aid, nid } from '../../../src/domain/link/model.js';
import type { FleetVip, Vips } from '../../../src/ports/driving/vips.js';
import { fleetCliRig } from '../../support/fleet-cli-rig.js';

const held: FleetVip = {
  ...{ aid: aid('acme'), phase: 'held', node: nid('n1'), wanted: '', generation: 7n, since: 0 },
  candidates: [nid('n1'), nid('n2')],
};

async function rig(list: readonly FleetVip[]) {
  const moved: string[] = [];
  const vips: Vips = {
    list: async () => list,
    move: async (node) => {
      moved.push(node);
      return { ...held, wanted: node === held.node ? '' : node };
    },
  };
  return { ...(await fleetCliRig({ vips })), moved };
}

test('who has it, and who may', async () => {
  const { cli } = await rig([held]);
  expect(await cli(['vip', 'list'])).toEqual({
    code: 0,
    out:
      'ACCOUNT  PHASE  NODE  WANTED  GENERATION  SINCE  CANDIDATES\n' +
      'acme     held   n1    -       7           -      n1,n2\n',
    err: '',
  });
  const { vips } = JSON.parse((await cli(['vip', 'list', '-o', 'json'])).out);
  expect(vips).toMatchObject([{ account: 'acme', phase: 'held', node: 'n1', generation: 7, candidates: ['n1', 'n2'] }]);
});

test.each(['free', 'assigning', 'releasing'] as const)('%s is degraded', async (phase) => {
  const { cli } = await rig([{ ...held, phase, node: '' }]);
  expect(await cli(['vip', 'list'])).toMatchObject({ code: 4, out: expect.stringContaining(phase) });
});

test('none', async () => {
  const { cli } = await rig([]);
  expect(await cli(['vip', 'list'])).toMatchObject({ code: 0, out: '', err: expect.stringContaining('vip.candidates') });
});

test('a move is noted, and who asked is audited', async () => {
  const { cli, moved, audit } = await rig([held]);
  expect(await cli(['vip', 'move', 'n2'])).toEqual({ code: 0, out: 'the virtual IP of acme goes to n2\n', err: '' });
  expect((await cli(['vip', 'move', 'n1'])).out).toBe('the virtual IP of acme is at n1 already\n');
  expect(moved).toEqual(['n2', 'n1']);
  expect(audit.dump().match(/admin\.move_vip/g)).toHaveLength(4);
  expect((await cli(['vip', 'move', 'no such'])).code).toBe(1);
});

test('a control plane without one says what to set', async () => {
  const { cli } = await fleetCliRig();
  expect(await cli(['vip', 'move', 'n1'])).toMatchObject({ code: 1, err: expect.stringContaining('vip.candidates') });
});
