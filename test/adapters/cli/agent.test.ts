import { describe, expect, test, vi } from 'vitest';
import { cliRig } from '../../support/cli-rig.js';
import { nodeCliRig } from '../../support/node-cli-rig.js';

describe('resync', () => {
  test('says where it is afterwards', async () => {
    const { cli } = await nodeCliRig();
    expect(await cli(['resync'])).toEqual({ code: 0, out: 'in step with the control plane at revision 7\n', err: '' });
    expect(JSON.parse((await cli(['resync', '-o', 'json'])).out)).toEqual({ held: false, revision: 7 });
  });

  test('J4: what is held back is told with what to do, and accepted only on demand', async () => {
    const { cli, resync } = await nodeCliRig();
    resync.held = 'it would remove 12 of 14 services';
    expect(await cli(['resync'])).toEqual({
      ...{ code: 1, out: '' },
      err: 'held back: it would remove 12 of 14 services\n  what to do: holdfast resync --accept, if that is what is wanted\n',
    });
    expect(JSON.parse((await cli(['resync', '-o', 'json'])).out)).toEqual({ held: true, reason: resync.held });
    expect((await cli(['resync', '--accept'])).code).toBe(0);
    expect(resync.held).toBeUndefined();
  });

  test('a control plane that gives nothing is waited for no longer than asked', async () => {
    const { cli, resync } = await nodeCliRig();
    resync.isReachable = false;
    const { code, err } = await cli(['resync', '--timeout', '50ms']);
    expect([code, err]).toEqual([1, expect.stringContaining('the control plane gave no state within 0.05 s')]);
    expect((await cli(['resync', '--timeout', 'soon'])).code).toBe(2);
  });

  test('G1: it is in the audit log who asked, and how it ended', async () => {
    const { cli, audit } = await nodeCliRig();
    await cli(['resync', '--accept']);
    const uid = process.geteuid?.();
    const record = { type: 'admin.resync', tag: 'accept', who: `local:${uid}` };
    expect(audit.records).toMatchObject([
      { ...record, line: 'decision', result: 'allowed' },
      { ...record, line: 'outcome', result: 'done' },
    ]);
  });
});

describe('journal', () => {
  test('what the node knows of instructions', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 0, 31, 12, 3) });
    const { cli, memory } = await nodeCliRig();
    const receivedAt = Date.UTC(2026, 0, 31, 12);
    const common = { type: 'RUN_REMOTE_SCRIPT', attempt: 1, receivedAt };
    memory.current = {
      ...{ journal: { id: 'j1', counter: 12n }, waiting: 1, running: 0, unconfirmed: 1, counts: { refused: 2 } },
      instructions: [
        {
          ...{ ...common, tag: 'a', state: 'received', attempt: 0 },
          ...{ outcome: undefined, finishedAt: undefined, waitsFor: 'lane scripts' },
        },
        { ...common, tag: 'b', state: 'handed', outcome: 'done', finishedAt: receivedAt + 5_000, waitsFor: undefined },
      ],
    };
    expect((await cli(['journal'])).out).toBe(
      [
        'JOURNAL       j1',
        'commits       12',
        'instructions  0 running, 1 waiting, 1 results not confirmed',
        '',
        'TAG  TYPE               STATE     ATTEMPT  OUTCOME  AGE  TOOK  WAITS FOR',
        'a    RUN_REMOTE_SCRIPT  received  0        -        3m   -     lane scripts',
        'b    RUN_REMOTE_SCRIPT  handed    1        done     3m   5s',
        '',
      ].join('\n'),
    );
    expect(JSON.parse((await cli(['journal', '-o', 'json'])).out)).toMatchObject({
      ...{ journal: { id: 'j1', counter: 12 }, waiting: 1, unconfirmed: 1, counts: { refused: 2 } },
      instructions: [
        { tag: 'a', receivedAt: '2026-01-31T12:00:00.000Z' },
        { tag: 'b', outcome: 'done' },
      ],
    });
    vi.useRealTimers();
  });

  test('of a node that was told nothing', async () => {
    const { cli } = await nodeCliRig();
    expect((await cli(['journal'])).out).toMatch(/^JOURNAL {7}none\n/);
  });

  test.each(['journal', 'resync'])('%s is not for a daemon that is no agent of a fleet', async (verb) => {
    const { cli } = await cliRig();
    expect(await cli([verb])).toMatchObject({ code: 1, err: expect.stringMatching(/admin\.not_offered[\s\S]*holdfast agent/) });
  });
});

describe('sync vpn', () => {
  test('says what this node is, and how many peers it has', async () => {
    const { cli, overlay, audit } = await nodeCliRig();
    expect(await cli(['sync', 'vpn'])).toEqual({ code: 0, out: 'the control plane has no overlay\n', err: '' });
    overlay.answer = { address: '10.78.0.3', peers: 2, failed: [] };
    expect(await cli(['sync', 'vpn'])).toEqual({ code: 0, out: '10.78.0.3 has 2 peers\n', err: '' });
    expect(JSON.parse((await cli(['sync', 'vpn', '-o', 'json'])).out)).toEqual({ address: '10.78.0.3', peers: 2, failed: [] });
    expect(audit.dump()).toContain('admin.sync');
  });

  test('peers that are refused are named, and the exit code says so', async () => {
    const { cli, overlay } = await nodeCliRig();
    overlay.answer = { address: '10.78.0.3', peers: 1, failed: [{ publicKey: 'key', reason: 'it is in the set twice' }] };
    expect(await cli(['sync', 'vpn'])).toEqual({
      ...{ code: 4, out: '10.78.0.3 has 1 peers\n' },
      err: 'REFUSED PEER  REASON\nkey           it is in the set twice\n',
    });
  });
});
