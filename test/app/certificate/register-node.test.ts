import { describe, expect, test } from 'vitest';
import { registerNode } from '../../../src/app/certificate/register-node.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import type { RegistrationAnswer, RegistrationRequest } from '../../../src/ports/certificate/registration-client.js';
import { FakeKeyMaker } from '../../fakes/fake-certificate-authority.js';
import { FakeRegistrationClient } from '../../fakes/fake-enrolment-clients.js';
import { FakeHostFacts } from '../../fakes/fake-host-facts.js';
import { FakePairStore } from '../../fakes/fake-pair-store.js';
import { enrolmentRig, options, peer } from './rig.js';

const unreachable = () => new AgentError('link.unreachable', { problem: 'no answer' });

/** A machine and the control plane that it registers with. */
function setUp(answer?: (request: RegistrationRequest) => Promise<RegistrationAnswer>) {
  const rig = enrolmentRig();
  const host = new FakeHostFacts();
  const pairs = new FakePairStore();
  const client = new FakeRegistrationClient(
    answer ?? (({ account, ...request }, each) => rig.service.register({ ...request, aid: account, address: '192.0.2.1' }, each)),
  );
  const connected: string[] = [];
  const connect = (server: string) => {
    connected.push(server);
    return client;
  };
  const parts = { connect, host, keys: new FakeKeyMaker(), pairs, clock: rig.clock };
  const run = (wish: { server?: string | undefined; account?: string | undefined; token?: string | undefined }) =>
    registerNode(parts, { server: 'cp.example', account: 'acme', token: undefined, ...wish }, options);
  return { ...rig, host, pairs, client, connected, run };
}

describe('registering this machine', () => {
  test('its pair is in use when it is done', async () => {
    const { pairs, run, token, record } = setUp();
    const { nid, pair } = await run({ token: await token() });
    expect(await pairs.load(options)).toEqual({ current: pair, staged: undefined });
    expect(peer(pair.certificate).identity.nid).toBe(nid);
    expect(await record(nid)).toMatchObject({ machineId: 'm1', os: 'debian-12', hostCidrs: ['10.0.0.0/24'] });
  });

  test('the private key never leaves it', async () => {
    const { client, pairs, run, token } = setUp();
    await run({ token: await token() });
    const { current } = await pairs.load(options);
    expect(current?.privateKey).toMatch(/^FAKE KEY/);
    const sent = JSON.stringify(client.requests.map(({ csr, ...rest }) => [Buffer.from(csr).toString(), rest]));
    expect(sent).not.toContain('FAKE KEY');
  });

  test('a server that knows no requests answers with a key of its own', async () => {
    const rig = enrolmentRig();
    const { pairs, run } = setUp(({ account, ...request }) =>
      rig.service.register({ ...request, csr: undefined, aid: account, address: '192.0.2.1' }, options),
    );
    await run({ token: await rig.token() });
    expect((await pairs.load(options)).current).toBeDefined();
  });

  test.each([
    [{ server: ' ', token: 't' }, 'missing: server'],
    [{ account: '', token: 't' }, 'missing: account'],
    [{ token: '' }, 'missing: token'],
    [{ token: undefined }, 'missing: token'],
  ])('%j: refused before anything else is looked at', async (wish, problem) => {
    const { connected, host, run } = setUp();
    host.id = undefined;
    await expect(run(wish)).rejects.toMatchObject({ code: 'certificate.incomplete', facts: { problem } });
    expect(connected).toEqual([]);
  });

  test.each([undefined, '', ' \n'])('a machine whose id is %j sends nothing', async (id) => {
    const { connected, host, run } = setUp();
    host.id = id;
    await expect(run({ token: 't' })).rejects.toMatchObject({ code: 'certificate.no_machine_id' });
    expect(connected).toEqual([]);
  });

  test('a root that is not good: no token is sent', async () => {
    const { client, run, token } = setUp();
    client.spoilRoot(new AgentError('certificate.root_invalid', { problem: 'is a web page' }));
    await expect(run({ token: await token() })).rejects.toMatchObject({ code: 'certificate.root_invalid' });
    expect(client.requests).toEqual([]);
  });

  test('a lost packet is no reason to give up, and a lost answer none to be another node', async () => {
    const { client, clock, run, token, registrations } = setUp();
    client.calls.loseNextAnswer(unreachable());
    const running = run({ token: await token() });
    await clock.advance(1_000);
    const { nid } = await running;
    expect(client.requests).toHaveLength(2);
    expect((await registrations.list(options)).map((node) => node.nid)).toEqual([nid]);
  });

  test('who cannot be reached three times is not waited for', async () => {
    const { client, clock, run, token } = setUp();
    client.calls.failNext(unreachable(), unreachable(), unreachable());
    const running = run({ token: await token() });
    running.catch(() => {});
    await clock.advance(4_000);
    await expect(running).rejects.toMatchObject({ code: 'link.unreachable' });
  });

  test('a refusal is not repeated', async () => {
    const { client, pairs, run } = setUp();
    await expect(run({ token: 'x' })).rejects.toMatchObject({ code: 'certificate.token_refused' });
    expect(client.requests).toHaveLength(1);
    expect(pairs.dump()).toBe('');
  });

  test('an answer that does not belong together is not used', async () => {
    const { pairs, run } = setUp(async () => ({ nid: 'n1', privateKey: '', certificate: '<html>', ca: '' }));
    await expect(run({ token: 't' })).rejects.toMatchObject({ code: 'certificate.unusable' });
    expect(pairs.dump()).toBe('');
  });

  test('a disk that is full is named', async () => {
    const { pairs, run, token } = setUp();
    pairs.failNext(new AgentError('certificate.not_written', { problem: 'no space' }));
    await expect(run({ token: await token() })).rejects.toMatchObject({ code: 'certificate.not_written' });
  });
});
