import { describe, expect, test } from 'vitest';
import type { EffectContext, EffectResult } from '../../../src/app/instruction/effects.js';
import { type Item, Workbench } from '../../../src/app/instruction/workbench.js';
import type { Scheduling } from '../../../src/domain/instruction/kinds/kind.js';
import { type Answer, errorAnswer, NO_CONTENT } from '../../../src/domain/instruction/model.js';
import { receivedRow } from '../../../src/domain/instruction/row.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { key } from '../../contract/journal.contract.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeTaskRunner } from '../../fakes/fake-task-runner.js';
import { sha256 } from '../../support/instruction-rig.js';

const usual: Scheduling = { lanes: [], slot: 'work', deadlineMs: undefined, repeat: 'never' };
const never = new Promise<never>(() => {});

/** A workbench whose records are a list of lines. */
class Bench {
  readonly clock = new FakeClock();
  /** Milliseconds that the machine has slept. */
  sleptMs = 0;
  readonly logger = new FakeLogger();
  readonly tasks = new FakeTaskRunner({}, this.clock);
  /** `tag state attempt` for each commit, then `tag outcome text`. */
  readonly lines: string[] = [];
  #failure: unknown;
  readonly bench = new Workbench({
    bootTime: () => this.clock.monotonic() + this.sleptMs,
    ...{ clock: this.clock, logger: this.logger, tasks: this.tasks, sha256 },
    records: {
      save: async ({ row: { tag, state, attempt, step } }) => {
        const failure = this.#failure;
        this.#failure = undefined;
        if (failure !== undefined) throw failure;
        this.lines.push([tag, state, attempt, ...(step === undefined ? [] : [step])].join(' '));
      },
      finished: async ({ row: { tag, state } }, { outcome, result }) => {
        expect(state).toBe('finished');
        this.lines.push(`${tag} ${outcome} ${textOf(result.answer)}`);
      },
    },
  });

  failNextSave(error: unknown): void {
    this.#failure = error;
  }

  item(tag: string, run: Item['run'], facts: Partial<Item> & { readonly scheduling?: Scheduling } = {}): Item {
    const row = receivedRow({
      ...key(tag),
      ...{ type: 'X', digest: 'd', payloadDigest: 'p', who: 'w', lanes: [], repeat: 'never', epoch: undefined, receivedAt: 0 },
      ...{ expiresAt: undefined, waiterMs: 1, boot: 'b', task: undefined, background: false },
    });
    return {
      ...{ id: `fleet-a\n${tag}`, row, run, scheduling: usual, bytes: 0, rule: 'default', failure: errorAnswer },
      ...{ startBefore: Number.POSITIVE_INFINITY, expires: false, received: undefined },
      ...facts,
    };
  }

  async settle(ms = 0): Promise<readonly string[]> {
    for (let round = 0; round < 5; round++) await this.clock.advance(0);
    if (ms > 0) await this.clock.advance(ms);
    for (let round = 0; round < 5; round++) await this.clock.advance(0);
    return this.lines.splice(0);
  }
}

function textOf(answer: Answer): string {
  return answer.kind === 'error' ? answer.text : answer.kind === 'json' ? answer.type : 'silence';
}

const done = async (): Promise<EffectResult> => ({ answer: NO_CONTENT });
const until = ({ signal }: EffectContext): Promise<EffectResult> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });

describe('an instruction', () => {
  test('A1: is committed as started, then runs, then ends', async () => {
    const rig = new Bench();
    rig.bench.add(
      rig.item('t', async ({ reached }) => {
        expect(rig.lines).toEqual(['t started 1']);
        await reached('half');
        return done();
      }),
    );
    expect(await rig.settle()).toEqual(['t started 1', 't started 1 half', 't done NO_CONTENT']);
    expect(rig.bench.counts).toEqual({ waiting: 0, running: 0 });
    expect(rig.bench.list()).toEqual([]);
  });

  test('A2: without effect has no commit', async () => {
    const rig = new Bench();
    rig.bench.add(rig.item('t', done, { scheduling: { ...usual, slot: 'read', repeat: 'read' } }));
    expect(await rig.settle()).toEqual(['t done NO_CONTENT']);
  });

  test.each<[string, unknown, string]>([
    ['an ERROR of its own is a failure', errorAnswer('no'), 't failed no'],
    ['silence is an answer', { kind: 'none' }, 't done silence'],
  ])('%s', async (_, answer, line) => {
    const rig = new Bench();
    rig.bench.add(rig.item('t', async () => ({ answer: answer as Answer })));
    expect(await rig.settle()).toEqual(['t started 1', line]);
  });

  test.each<[string, unknown, string]>([
    ['of ours', new AgentError('outbound.refused', { problem: 'not there' }), 't failed outbound.refused: not there'],
    ['that nobody foresaw', new TypeError('x is undefined'), 't failed x is undefined'],
    ['that is no Error', 'text', 't failed text'],
    [
      'of the runner',
      new AgentError('instruction.interrupted'),
      't unknown INTERRUPTED: it was started; it may have taken effect, and no repeat of this tag runs',
    ],
    [
      'of a later commit',
      new AgentError('journal.unavailable', { problem: 'full' }),
      't refused JOURNAL_UNAVAILABLE: journal.unavailable: full; nothing was done',
    ],
  ])('that throws an error %s is answered with it', async (_, error, line) => {
    const rig = new Bench();
    rig.bench.add(
      rig.item('t', async () => {
        throw error;
      }),
    );
    expect(await rig.settle()).toEqual(['t started 1', line]);
    expect(rig.logger.dump('error') !== '').toBe(!(error instanceof AgentError));
  });

  test('K: whose second commit fails does nothing', async () => {
    const rig = new Bench();
    rig.failNextSave(new AgentError('journal.unavailable', { problem: 'full' }));
    let ran = false;
    rig.bench.add(
      rig.item('t', () => {
        ran = true;
        return done();
      }),
    );
    expect(await rig.settle()).toEqual(['t refused JOURNAL_UNAVAILABLE: journal.unavailable: full; nothing was done']);
    expect(ran).toBe(false);
  });

  test('a failure has the form of its kind', async () => {
    const rig = new Bench();
    const failure = (): Answer => ({ kind: 'none' });
    rig.bench.add(rig.item('t', () => Promise.reject(new Error('x')), { failure }));
    expect(await rig.settle()).toEqual(['t started 1', 't failed silence']);
  });
});

describe('deadlines', () => {
  test('what runs in this process is aborted at its deadline', async () => {
    const rig = new Bench();
    rig.bench.add(rig.item('t', until, { scheduling: { ...usual, deadlineMs: 4_000 } }));
    expect(await rig.settle(3_999)).toEqual(['t started 1']);
    expect(await rig.settle(1)).toEqual(['t failed instruction.timed_out: it took longer than 4000 ms']);
  });

  test('one that ended in time leaves no timer behind', async () => {
    const rig = new Bench();
    rig.bench.add(rig.item('t', done, { scheduling: { ...usual, deadlineMs: 4_000 }, startBefore: 100 }));
    await rig.settle();
    expect(rig.clock.sleepers).toBe(0);
  });
});

describe('waiting', () => {
  const lane = { ...usual, lanes: ['x'] };

  test('A11: one whose time is over when its turn comes does not start', async () => {
    const rig = new Bench();
    rig.bench.add(rig.item('1', until, { scheduling: { ...lane, deadlineMs: 1_000 } }));
    rig.bench.add(rig.item('2', done, { scheduling: lane, startBefore: 1_000, expires: true }));
    const lines = await rig.settle(1_000);
    expect(lines.filter((line) => line.startsWith('2'))).toEqual(['2 refused EXPIRED: not started']);
  });

  test('the list says what runs and what the others wait for', async () => {
    const rig = new Bench();
    for (const tag of ['1', '2']) rig.bench.add(rig.item(tag, until, { scheduling: lane }));
    await rig.settle();
    expect(rig.bench.list().map(({ item, waitsFor }) => [item.row.tag, waitsFor])).toEqual([
      ['1', undefined],
      ['2', 'lane x'],
    ]);
    expect(rig.bench.counts).toEqual({ waiting: 1, running: 1 });
  });

  test('A7: an adopted one has its lane at once, and only its end is committed', async () => {
    const rig = new Bench();
    const { promise, resolve } = Promise.withResolvers<EffectResult>();
    const old = rig.item('1', () => promise, { scheduling: lane });
    rig.bench.adopt({ ...old, row: { ...old.row, state: 'started', attempt: 1 } });
    rig.bench.add(rig.item('2', done, { scheduling: lane }));
    expect(await rig.settle(1_000)).toEqual([]);
    resolve({ answer: NO_CONTENT });
    expect(await rig.settle()).toEqual(['1 done NO_CONTENT', '2 started 1', '2 done NO_CONTENT']);
  });
});

describe('A17: cancel', () => {
  test('of one that waits, that runs, and of none', async () => {
    const rig = new Bench();
    const lane = { ...usual, lanes: ['x'] };
    for (const tag of ['1', '2']) rig.bench.add(rig.item(tag, until, { scheduling: lane }));
    expect(await rig.settle()).toEqual(['1 started 1']);
    await rig.bench.cancel('fleet-a\n2');
    expect(await rig.settle()).toEqual(['2 cancelled CANCELLED: not started']);
    await rig.bench.cancel('fleet-a\n1');
    expect(await rig.settle()).toEqual(['1 cancelled CANCELLED: may have taken effect']);
    await rig.bench.cancel('fleet-a\n1');
    expect(await rig.settle()).toEqual([]);
  });

  test('of one that ends all the same: its result stands', async () => {
    const rig = new Bench();
    const { promise, resolve } = Promise.withResolvers<EffectResult>();
    rig.bench.add(rig.item('1', () => promise));
    await rig.settle();
    await rig.bench.cancel('fleet-a\n1');
    resolve({ answer: NO_CONTENT });
    expect(await rig.settle()).toEqual(['1 done NO_CONTENT']);
  });
});

describe('stop', () => {
  test('what runs is left for the next process, without a word in the journal', async () => {
    const rig = new Bench();
    rig.bench.add(rig.item('1', until));
    rig.bench.add(rig.item('2', done, { scheduling: { ...usual, lanes: ['a'] }, startBefore: 10_000 }));
    await rig.settle();
    await rig.bench.stop();
    rig.bench.add(rig.item('3', done));
    expect(await rig.settle(20_000)).toEqual([]);
  });

  test('an end that is on its way is written', async () => {
    const rig = new Bench();
    const { promise, resolve } = Promise.withResolvers<EffectResult>();
    rig.bench.add(rig.item('1', () => promise));
    await rig.settle();
    const stopped = rig.bench.stop();
    resolve({ answer: NO_CONTENT });
    await stopped;
    expect(rig.lines).toEqual(['1 done NO_CONTENT']);
  });

  test('waits for nothing that never ends but what is on its way', async () => {
    const rig = new Bench();
    rig.bench.add(rig.item('1', ({ signal }) => Promise.race([never, until({ signal } as EffectContext)])));
    await rig.settle();
    await rig.bench.stop();
    expect(rig.bench.counts.running).toBe(1);
  });
});

describe('D1: a whole set gives way to a newer one', () => {
  const set: Scheduling = { lanes: ['overlay'], slot: 'urgent', deadlineMs: undefined, repeat: 'repeat', newestOnly: true };
  const answer = (text: string): EffectResult => ({ answer: { kind: 'json', type: text, value: {} } });

  /** One that runs until it is let go, and three behind it. */
  async function waiting(bench: Bench) {
    const first = Promise.withResolvers<EffectResult>();
    bench.bench.add(bench.item('s1', () => first.promise, { scheduling: set }));
    await bench.settle();
    const ran: string[] = [];
    for (const tag of ['s2', 's3', 's4']) {
      const run = async () => {
        ran.push(tag);
        return answer(`by ${tag}`);
      };
      bench.bench.add(bench.item(tag, run, { scheduling: set }));
    }
    await bench.settle();
    return { ran, end: () => first.resolve(answer('by s1')) };
  }

  test('only the newest of those that wait runs, and the older ones are answered with its result', async () => {
    const bench = new Bench();
    const { ran, end } = await waiting(bench);
    expect(bench.bench.counts).toEqual({ waiting: 1, running: 1 });
    end();
    const lines = (await bench.settle()).filter((line) => line.includes(' done '));
    expect(ran).toEqual(['s4']);
    expect(lines.map((line) => line.split(' ')[0])).toEqual(['s1', 's4', 's2', 's3']);
    expect(bench.bench.list()).toEqual([]);
  });

  test('one that is cancelled meanwhile is cancelled alone', async () => {
    const bench = new Bench();
    const { end } = await waiting(bench);
    await bench.bench.cancel('fleet-a\ns2');
    end();
    const lines = await bench.settle();
    expect(lines.filter((line) => line.startsWith('s2 '))).toEqual(['s2 cancelled CANCELLED: not started']);
    expect(lines.filter((line) => /^s[34] done /.test(line))).toHaveLength(2);
  });

  test('another one of the lane, that is no whole set, keeps its place', async () => {
    const bench = new Bench();
    const first = Promise.withResolvers<EffectResult>();
    const ran: string[] = [];
    const note = (tag: string) => async () => {
      ran.push(tag);
      return answer(tag);
    };
    bench.bench.add(bench.item('s1', () => first.promise, { scheduling: set }));
    bench.bench.add(bench.item('o1', note('o1'), { scheduling: { ...set, newestOnly: undefined } }));
    bench.bench.add(bench.item('s2', note('s2'), { scheduling: set }));
    await bench.settle();
    first.resolve(answer('s1'));
    await bench.settle();
    expect(ran).toEqual(['o1', 's2']);
  });
});
