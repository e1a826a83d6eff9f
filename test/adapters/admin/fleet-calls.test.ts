import { describe, expect, test } from 'vitest';
import { InstructionState } from '../../../src/adapters/generated/holdfast/admin/v1/fleet.js';
import { adminRig } from '../../support/admin-rig.js';
import { fleetCliRig } from '../../support/fleet-cli-rig.js';
import { base64, options } from '../../support/fleet-rig.js';

const send = { node: 'n1', type: 'GET_NODE_STATUS', json: '{"a":1}', tag: 'a', expiresMs: 0n };
const uid = process.geteuid?.();

describe('every call', () => {
  test('send, list, get, cancel', async () => {
    const { client, clock, connect } = await fleetCliRig();
    const api = client();
    const now = BigInt(clock.now());
    const { instruction } = await api.send(send, options);
    expect(instruction).toEqual({
      ...{ node: 'n1', tag: 'a', type: 'GET_NODE_STATUS', state: InstructionState.PENDING, sentBy: `local:${uid}` },
      ...{ issuedAtMs: now, expiresAtMs: now + 3_600_000n, deliveredAtMs: 0n, finishedAtMs: 0n },
      ...{ waitsFor: 'the node to connect', reason: '', replyType: '', replyBytes: 0n },
    });
    await api.send({ ...send, tag: 'b', expiresMs: 5_000n }, options);
    expect((await api.listInstructions({ node: '' }, options)).instructions.map(({ tag }) => tag)).toEqual(['a', 'b']);
    const cancelled = await api.cancelInstruction({ node: 'n1', tag: 'b' }, options);
    expect(cancelled.instruction?.state).toBe(InstructionState.CANCELLED);
    const { say } = await connect();
    await say('NODE_STATUS', 'a', base64('{}'));
    const { instruction: done, replyJsonB64 } = await api.getInstruction({ node: 'n1', tag: 'a' }, options);
    expect(done).toMatchObject({ state: InstructionState.DONE, replyType: 'NODE_STATUS', replyBytes: 4n });
    expect(replyJsonB64).toBe(base64('{}'));
  });

  test('watch goes on until abort, which is no error', async () => {
    const { client, connect } = await fleetCliRig();
    const api = client();
    await api.send(send, options);
    const abort = new AbortController();
    const watch = api.watchInstructions({ node: 'n1', tag: 'a' }, abort)[Symbol.asyncIterator]();
    expect((await watch.next()).value.instruction?.state).toBe(InstructionState.PENDING);
    await connect();
    const states: unknown[] = [];
    while (states.at(-1) !== InstructionState.DELIVERED) states.push((await watch.next()).value.instruction?.state);
    const last = watch.next();
    abort.abort();
    expect((await last).done).toBe(true);
  });

  test('nodes, cordon, remove', async () => {
    const { client, connect } = await fleetCliRig();
    const api = client();
    await api.cordonNode({ node: 'n1', cordoned: true }, options);
    const { stream } = await connect();
    expect((await api.listNodes(options)).nodes).toMatchObject([
      {
        node: 'n1',
        account: 'acme',
        state: 'online',
        cordoned: true,
        os: 'debian-12',
        registeredAtMs: BigInt(Date.UTC(2026, 0, 1)),
      },
    ]);
    await api.removeNode({ node: 'n1' }, options);
    expect(stream.ended?.status).toBe('revoked');
    await expect(api.removeNode({ node: 'n1' }, options)).rejects.toMatchObject({ code: 'fleet.unknown_node' });
  });

  test('tokens', async () => {
    const { client, clock } = await fleetCliRig();
    const api = client();
    const now = BigInt(clock.now());
    const { token, facts } = await api.createToken({ account: '', ttlMs: 60_000n, replace: 'n1' }, options);
    const expected = { id: 't1', account: 'acme', replace: 'n1', createdAtMs: now, expiresAtMs: now + 60_000n, usedBy: '' };
    expect([token, facts]).toEqual(['t1.secret', expected]);
    expect((await api.listTokens(options)).tokens).toEqual([expected]);
    await api.revokeToken({ id: 't1' }, options);
    await expect(api.revokeToken({ id: 't1' }, options)).rejects.toMatchObject({ code: 'fleet.unknown_token' });
  });

  test.each([
    ['a node that is no name', { node: '../n1' }, 'dispatch.invalid'],
    ['a tag that is none', { tag: 'a\nb' }, 'dispatch.invalid'],
    ['a node that nobody knows', { node: 'n9' }, 'fleet.unknown_node'],
    ['a type that there is not', { type: 'GET_NODE' }, 'dispatch.invalid'],
  ])('%s is refused as what it is', async (_, wrong, code) => {
    const { client } = await fleetCliRig();
    await expect(client().send({ ...send, ...wrong }, options)).rejects.toMatchObject({ code });
  });
});

describe('G1, H1: the audit log', () => {
  test('has every call that changes something, before and after, with who made it', async () => {
    const { client, audit } = await fleetCliRig();
    const api = client();
    await api.send(send, options);
    await api.cancelInstruction({ node: 'n1', tag: 'a' }, options);
    await api.cordonNode({ node: 'n1', cordoned: true }, options);
    await api.cordonNode({ node: 'n1', cordoned: false }, options);
    await api.createToken({ account: 'other', ttlMs: 1_000n, replace: '' }, options);
    await api.revokeToken({ id: 't1' }, options);
    await api.removeNode({ node: 'n1' }, options);
    await expect(api.removeNode({ node: 'n1' }, options)).rejects.toThrow();
    await Promise.all([api.listNodes(options), api.listTokens(options), api.listInstructions({ node: '' }, options)]);
    const who = `local:${uid}`;
    expect(audit.dump().split('\n')).toEqual(
      [
        ['admin.send GET_NODE_STATUS', 'a', 'done'],
        ['admin.cancel', 'a', 'done'],
        ['admin.cordon', 'n1', 'done'],
        ['admin.uncordon', 'n1', 'done'],
        ['admin.create_token', 'other', 'done'],
        ['admin.revoke_token', 't1', 'done'],
        ['admin.remove_node', 'n1', 'done'],
        ['admin.remove_node', 'n1', 'fleet.unknown_node'],
      ].flatMap(([type, tag, result]) => [`decision allowed ${type} ${tag} ${who}`, `outcome ${result} ${type} ${tag} ${who}`]),
    );
    expect(JSON.stringify(audit.records)).not.toContain('secret');
  });

  test('that cannot be written lets nothing happen', async () => {
    const { client, audit, store } = await fleetCliRig();
    audit.fill();
    await expect(client().send(send, options)).rejects.toMatchObject({ code: 'audit.not_written' });
    expect(store.dump('inst')).toBe('');
  });

  test('whose outcome line fails leaves the answer as it is', async () => {
    const { client, audit, instructions, logger } = await fleetCliRig({});
    const real = instructions.send.bind(instructions);
    const sending = client();
    instructions.send = async (call, callOptions) => {
      const status = await real(call, callOptions);
      audit.fill();
      return status;
    };
    expect((await sending.send(send, options)).instruction?.tag).toBe('a');
    expect(logger.dump('error')).toContain('not in the audit log');
  });
});

test('a daemon without a fleet says so', async () => {
  const { server, client } = await adminRig();
  await server.start();
  await expect(client().listNodes(options)).rejects.toMatchObject({ code: 'admin.not_offered', kind: 'unimplemented' });
});
