import { expect, test } from 'vitest';
import type { TxnRequest, TxnResponse } from '../../../src/adapters/generated/etcd/etcdserverpb/rpc.js';
import { commitOn } from '../../../src/adapters/store/etcd-control-commit.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import type { Condition, Write } from '../../../src/ports/store/control-store.js';
import { FakeClock } from '../../fakes/fake-clock.js';

const options = { signal: new AbortController().signal };
const unknown = () => new AgentError('store.outcome_unknown', { problem: 'no answer' });
const away = () => new AgentError('store.unavailable', { problem: 'no member' });
const conditions: readonly Condition[] = [{ key: 'a', version: 7n }];
const writes: readonly Write[] = [
  { key: 'a', value: 'mine' },
  { key: 'b', value: null },
  { key: 'c', value: 'too' },
];

const done = { succeeded: true, header: { revision: 8n }, responses: [] };
/** The comparison did not hold, and this stands there: value and revision of each key, undefined where there is none. */
function stands(...kvs: readonly (readonly [string, bigint] | undefined)[]) {
  const responses = kvs.map((kv) => {
    const found = kv === undefined ? [] : [{ value: Buffer.from(kv[0]), modRevision: kv[1] }];
    return { response: { $case: 'responseRange', value: { kvs: found } } };
  });
  return { succeeded: false, header: { revision: 9n }, responses };
}

/** Commits against an etcd that answers so, and then never again. */
async function commit(answers: readonly (object | AgentError)[], given = conditions): Promise<unknown> {
  const clock = new FakeClock();
  const rest = [...answers];
  const requests: TxnRequest[] = [];
  const client = {
    async txn(request: TxnRequest): Promise<TxnResponse> {
      requests.push(request);
      const answer = rest.shift() ?? unknown();
      if (answer instanceof AgentError) throw answer;
      return answer as TxnResponse;
    },
  };
  const outcome = commitOn({ client, clock, name: (key) => `/p/${key}` }, given, writes, options).then(
    (version) => version ?? 'no',
    (error: unknown) => (error instanceof AgentError ? error.code : error),
  );
  let settled: unknown;
  void outcome.then((value) => {
    settled = value;
  });
  for (let step = 0; step < 100 && settled === undefined; step += 1) await clock.advance(100);
  expect(new Set(requests.map(({ compare }) => compare)).size, 'the same comparison').toBe(1);
  return settled;
}

test.each([
  { name: 'what etcd has done', answers: [done], is: 8n },
  { name: 'a condition that did not hold', answers: [stands(['other', 8n], undefined, undefined)], is: 'no' },
  { name: 'also when what stands there is the same', answers: [stands(['mine', 8n], undefined, ['too', 8n])], is: 'no' },
  { name: 'a member that is away', answers: [away()], is: 'store.unavailable' },
  { name: 'E7: one that was lost is done the second time', answers: [unknown(), done], is: 8n },
  { name: 'E7: also when no member can be asked meanwhile', answers: [unknown(), away(), away(), done], is: 8n },
  {
    name: 'E7: one that was done is known by what it left',
    answers: [unknown(), stands(['mine', 8n], undefined, ['too', 8n])],
    is: 8n,
  },
  { name: 'another value', answers: [unknown(), stands(['theirs', 8n], undefined, ['too', 8n])], is: 'store.outcome_unknown' },
  { name: 'another key', answers: [unknown(), stands(['mine', 8n], ['b', 3n], ['too', 8n])], is: 'store.outcome_unknown' },
  { name: 'of two commits', answers: [unknown(), stands(['mine', 8n], undefined, ['too', 9n])], is: 'store.outcome_unknown' },
  { name: 'E10: nobody tells within 5 s', answers: [], is: 'store.outcome_unknown' },
])('$name: $is', async ({ answers, is }) => {
  expect(await commit(answers)).toBe(is);
});

test('what could be done twice is not repeated', async () => {
  expect(await commit([unknown(), done], [])).toBe('store.outcome_unknown');
  expect(await commit([unknown(), done], [{ key: 'b', version: 7n }])).toBe('store.outcome_unknown');
  expect(await commit([unknown(), done], [{ key: 'z', version: 7n }])).toBe('store.outcome_unknown');
});
