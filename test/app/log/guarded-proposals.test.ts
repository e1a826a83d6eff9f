import { describe, expect, test } from 'vitest';
import { GuardedProposals } from '../../../src/app/log/guarded-proposals.js';
import { LogConsumer } from '../../../src/app/log/log-consumer.js';
import type { NodeName } from '../../../src/domain/identity/model.js';
import { canonicalJson } from '../../../src/domain/kernel/canonical-json.js';
import { type Change, logKey, type Proposal, revision } from '../../../src/domain/log/model.js';
import { MOST_OBJECTS, nodeSource } from '../../../src/domain/log/node-writes.js';
import type { CallOptions } from '../../../src/ports/call-options.js';
import { at } from '../../contract/ordered-log.support.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';
import { peer } from '../../support/peer.js';
import { endpoints } from '../../support/small-cluster.js';

const options = { signal: new AbortController().signal };
const web = 'web' as NodeName;

const published = (name: string, address = '10.0.0.1', node = web): Change => ({
  key: logKey(`endpoints/default/${name}`),
  value: canonicalJson({ ...endpoints(name, 'a', { address, node }), source: nodeSource(node) }),
});
const gone = ({ key }: Change): Change => ({ key, value: null });
const of = (...changes: readonly Change[]): Proposal => ({ changes, preconditions: [] });

/** Another one writes between the judgement and the commit. */
class BusyLog extends FakeOrderedLog {
  readonly between: Change[][] = [];

  override async propose(proposal: Proposal, callOptions: CallOptions) {
    const changes = this.between.shift();
    if (changes !== undefined) await super.propose({ changes, preconditions: [] }, callOptions);
    return super.propose(proposal, callOptions);
  }
}

async function setUp() {
  const clock = new FakeClock();
  const log = new BusyLog({ clock });
  const view = new LogConsumer(log, clock, new FakeLogger());
  await view.start();
  await clock.advance(0);
  const names = new Map<string, NodeName>([
    ['n-web', web],
    ['n-other', 'other' as NodeName],
  ]);
  const proposals = new GuardedProposals({ log, view, clock, nodeIdOf: ({ identity }) => names.get(identity.nid) });
  await proposals.start();
  const propose = async (proposal: Proposal, nid = 'n-web') => {
    const result = await proposals.propose(peer(nid), proposal, options);
    await clock.advance(50);
    return result;
  };
  return { clock, log, view, proposals, propose };
}

describe('E17', () => {
  test('what is its own is committed, changed and taken back', async () => {
    const { propose, log } = await setUp();
    expect(await propose(of(published('web')))).toEqual({ outcome: 'committed', revision: 1n });
    expect(await propose(of(published('web', '10.0.0.2')))).toEqual({ outcome: 'committed', revision: 2n });
    expect(await propose(of(published('web', '10.0.0.2')))).toEqual({ outcome: 'unchanged', revision: 2n });
    expect(await propose(of(gone(published('web'))))).toEqual({ outcome: 'committed', revision: 3n });
    expect(log.dump()).toBe('');
  });

  test.each<[string, Proposal, string, string]>([
    ["another's", of(published('web')), 'n-other', 'log.denied'],
    ['one of its own with one that is not', of(published('web'), published('else')), 'n-web', 'log.denied'],
    ['a node whose name is not known', of(published('web')), 'n-unknown', 'log.denied'],
    [
      'a condition on what it may not read',
      { changes: [published('web')], preconditions: [{ key: logKey('secret/default/a'), revision: revision(0n) }] },
      'n-web',
      'log.denied',
    ],
    [
      'an object that is too large',
      of({ key: logKey('endpoints/default/web'), value: 'x'.repeat(256 * 1024 + 1) }),
      'n-web',
      'log.too_large',
    ],
  ])('%s is refused and leaves no trace', async (_, proposal, nid, code) => {
    const { propose, log } = await setUp();
    await expect(propose(proposal, nid)).rejects.toMatchObject({ code });
    expect(log.dump()).toBe('');
  });

  test('20 proposals a second, of each node', async () => {
    const { proposals, clock } = await setUp();
    const tries = (count: number, nid: string) =>
      Promise.allSettled(Array.from({ length: count }, () => proposals.propose(peer(nid), of(), options)));
    const refused = (results: readonly PromiseSettledResult<unknown>[]) =>
      results.filter(({ status }) => status === 'rejected').length;
    expect([refused(await tries(30, 'n-web')), refused(await tries(20, 'n-other'))]).toEqual([10, 0]);
    await expect(proposals.propose(peer('n-web'), of(), options)).rejects.toMatchObject({ code: 'log.too_many' });
    await clock.advance(1_000);
    expect(refused(await tries(21, 'n-web'))).toBe(1);
    expect(proposals.limited).toBe(12);
  });

  test('1,000 objects; what is there can still be changed and removed', async () => {
    const { propose } = await setUp();
    const all = Array.from({ length: MOST_OBJECTS }, (_, i) => published(`web-${i}`));
    await expect(propose(of(...all, published('web')))).rejects.toMatchObject({ code: 'log.too_large' });
    expect(await propose(of(...all))).toMatchObject({ outcome: 'committed' });
    await expect(propose(of(published('web')))).rejects.toMatchObject({ code: 'log.too_many' });
    expect(await propose(of(published('web-7', '10.0.0.9')))).toMatchObject({ outcome: 'committed' });
    expect(await propose(of(gone(published('web-8')), published('web')))).toMatchObject({ outcome: 'committed' });
  });

  test.each<[string, Partial<Proposal>, string]>([
    [
      'more than 1,000 changes',
      { changes: Array.from({ length: 1_001 }, (_, i) => gone(published(`web-${i}`))) },
      'log.too_large',
    ],
    [
      'more than 1,000 conditions',
      { preconditions: Array.from({ length: 1_001 }, () => at('service/default/a', 0n)) },
      'log.too_large',
    ],
    ['a request id of 129 characters', { requestId: 'r'.repeat(129) }, 'log.invalid'],
    ['a request id with a line break', { requestId: 'a\nb' }, 'log.invalid'],
    ['an empty request id', { requestId: '' }, 'log.invalid'],
  ])('%s is refused', async (_, proposal, code) => {
    const { propose } = await setUp();
    await expect(propose({ ...of(), ...proposal })).rejects.toMatchObject({ code });
  });
});

describe('a judgement holds only on what it was made of', () => {
  test('what was changed meanwhile is judged anew', async () => {
    const { propose, log } = await setUp();
    log.between.push([published('web', '10.0.0.7')]);
    expect(await propose(of(published('web', '10.0.0.8')))).toEqual({ outcome: 'committed', revision: 2n });
    const foreign = { ...published('web'), value: published('web').value?.replace('node:web', 'operator') ?? null };
    log.between.push([foreign]);
    await expect(propose(of(published('web', '10.0.0.9')))).rejects.toMatchObject({ code: 'log.denied' });
  });

  test('one that never holds is given up', async () => {
    const { propose, log } = await setUp();
    for (let i = 0; i < 10; i += 1) log.between.push([published('web', `10.0.1.${i}`)]);
    await expect(propose(of(published('web')))).rejects.toMatchObject({ code: 'log.not_written' });
  });

  test("the node's own conditions are answered to it", async () => {
    const { propose } = await setUp();
    await propose(of(published('web')));
    const stale = {
      changes: [published('web', '10.0.0.2')],
      preconditions: [{ key: logKey('endpoints/default/web'), revision: revision(0n) }],
    };
    expect(await propose(stale)).toEqual({ outcome: 'conflict', key: 'endpoints/default/web', expected: 0n, actual: 1n });
  });

  test('E7: a request that is repeated gets its first answer, and not that of another node', async () => {
    const { propose } = await setUp();
    const request = { ...of(published('web')), requestId: 'r1' };
    expect(await propose(request)).toEqual({ outcome: 'committed', revision: 1n });
    await propose(of(published('web', '10.0.0.2')));
    expect(await propose(request)).toEqual({ outcome: 'committed', revision: 1n });
    const other = published('other', '10.0.0.3', 'other' as NodeName);
    expect(await propose({ ...of(other), requestId: 'r1' }, 'n-other')).toEqual({ outcome: 'committed', revision: 3n });
  });
});

test('stop lets go of the view, and a start begins anew', async () => {
  const { proposals, propose, clock } = await setUp();
  await proposals.stop();
  await proposals.stop();
  await proposals.start();
  await clock.advance(0);
  expect(await propose(of(published('web')))).toMatchObject({ outcome: 'committed' });
});
