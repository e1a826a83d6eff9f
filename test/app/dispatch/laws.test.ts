import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isFinished } from '../../../src/domain/dispatch/model.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';
import { FakeRegistrations } from '../../fakes/fake-registrations.js';
import { agentFacts, base64, type FakeNodeStream, fleetRig, n1, options, settle, tagOf } from '../../support/fleet-rig.js';

const step = fc.oneof(
  { weight: 4, arbitrary: fc.constant('send' as const) },
  { weight: 3, arbitrary: fc.constant('connect' as const) },
  { weight: 2, arbitrary: fc.constant('close' as const) },
  { weight: 4, arbitrary: fc.constant('answer' as const) },
  { weight: 1, arbitrary: fc.constant('cancel' as const) },
  { weight: 2, arbitrary: fc.constant('store fails' as const) },
  { weight: 1, arbitrary: fc.constant('answer lost, written' as const) },
  { weight: 1, arbitrary: fc.constant('answer lost, not written' as const) },
  { weight: 1, arbitrary: fc.constant('outage' as const) },
  { weight: 2, arbitrary: fc.constant('second' as const) },
  { weight: 1, arbitrary: fc.constant('minute' as const) },
  { weight: 1, arbitrary: fc.constant('restart of the server' as const) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A control plane, one node, and whatever may befall them. */
class World {
  readonly store = new FakeControlStore();
  readonly clock = new FakeClock();
  readonly registrations = new FakeRegistrations();
  readonly streams: FakeNodeStream[] = [];
  readonly #keepsJournal: boolean;
  #fleet: Awaited<ReturnType<typeof fleetRig>> | undefined;
  #connection: Awaited<ReturnType<Awaited<ReturnType<typeof fleetRig>>['connect']>> | undefined;
  #sessions = 0;
  #sends = 0;

  constructor(keepsJournal: boolean) {
    this.#keepsJournal = keepsJournal;
    this.registrations.register(n1);
  }

  async fleet() {
    if (this.#fleet !== undefined) return this.#fleet;
    const starting = fleetRig({ store: this.store, clock: this.clock, registrations: this.registrations });
    // A failure that is due meets the start: it is tried again.
    await this.clock.advance(1_000);
    this.#fleet = await starting;
    return this.#fleet;
  }

  async take(each: Step): Promise<void> {
    const fleet = await this.fleet();
    const ignore = () => {};
    switch (each) {
      case 'send':
        void fleet.send({ tag: tagOf(`t${this.#sends++}`) }).catch(ignore);
        return settle();
      case 'connect':
        return this.#connect().catch(ignore);
      case 'close':
        return this.#connection?.close();
      case 'answer':
        return this.answer();
      case 'cancel':
        void fleet.instructions.cancel(n1, tagOf('t0'), options).catch(ignore);
        return settle();
      case 'store fails':
        return this.store.failNext();
      case 'answer lost, written':
        return this.store.loseNextAnswer('written');
      case 'answer lost, not written':
        return this.store.loseNextAnswer('not written');
      case 'outage':
        this.store.setUnavailable(true);
        await this.clock.advance(2_000);
        return this.store.setUnavailable(false);
      case 'second':
        return this.clock.advance(1_000);
      case 'minute':
        return this.clock.advance(60_000);
      case 'restart of the server':
        this.#connection = undefined;
        this.#fleet = undefined;
        return fleet.stop();
    }
  }

  async #connect(): Promise<void> {
    const { connect } = await this.fleet();
    const made = (stream: FakeNodeStream) => this.streams.push(stream);
    const agent = agentFacts({ session: ++this.#sessions, journal: { id: 'j1', counter: BigInt(this.#sessions) } });
    this.#connection = await connect({ agent: this.#keepsJournal ? agent : undefined, made });
  }

  /** The oldest on the current stream that has not been answered on it. */
  async answer(): Promise<void> {
    const { stream, say } = this.#connection ?? {};
    const acknowledged = new Set(stream?.sent.filter(({ type }) => type === 'RESULT_ACK').map(({ tag }) => tag));
    const open = stream?.sent.find(({ type, tag }) => type === 'GET_NODE_STATUS' && !acknowledged.has(tag));
    if (open === undefined) return;
    await say?.('NODE_STATUS', open.tag, base64(`"${open.tag}"`));
  }

  /** All goes well from now on, long enough for everything to end. */
  async rest(): Promise<void> {
    await this.clock.advance(60_000);
    await this.#connect();
    for (let round = 0; round < 60; round += 1) {
      await this.clock.advance(1_000);
      await this.answer();
    }
    await this.clock.advance(60_000);
  }
}

test.each([
  ['an agent with a journal', true],
  ['an older agent', false],
])(
  'law: whatever fails when, what is sent to %s is sent as it should be, and ends',
  { timeout: 60_000 },
  async (_, keepsJournal) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40, size: 'max' }), async (steps) => {
        const world = new World(keepsJournal);
        for (const each of steps) await world.take(each);
        await world.rest();
        const sentOn = world.streams.map(({ sent }) =>
          sent.filter(({ type }) => type === 'GET_NODE_STATUS').map(({ tag }) => tag),
        );
        // At most once on a stream; to one that cannot deduplicate, at most once in all.
        for (const tags of keepsJournal ? sentOn : [sentOn.flat()]) expect(tags).toEqual([...new Set(tags)]);
        const { book, stop } = await world.fleet();
        const rows = [...book.rows()];
        const order = new Map(rows.map(({ row }) => [row.tag as string, row.order ?? 0n]));
        for (const tags of sentOn)
          expect(tags.map((tag) => order.get(tag))).toEqual(tags.map((tag) => order.get(tag)).sort(byValue));
        expect(rows.filter(({ row }) => !isFinished(row)).map(({ row }) => `${row.tag} ${row.state}`)).toEqual([]);
        // Nothing that was never sent has a result, and what was acknowledged has one.
        const sent = new Set(sentOn.flat());
        for (const { row } of rows) if (row.state === 'done') expect(sent.has(row.tag)).toBe(true);
        const acknowledged = world.streams.flatMap((stream) => stream.sent.filter(({ type }) => type === 'RESULT_ACK'));
        for (const { tag } of acknowledged) expect(book.get(n1, tagOf(tag))?.row.state).toBe('done');
        await stop();
      }),
      { numRuns: 60 },
    );
  },
);

function byValue(a: bigint | undefined = 0n, b: bigint | undefined = 0n): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
