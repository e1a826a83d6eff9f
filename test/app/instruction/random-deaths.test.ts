import fc from 'fast-check';
import { expect, test } from 'vitest';
import { contentOf, FakeSession, InstructionWorld, type Process, serverFacts } from '../../support/instruction-rig.js';

const TAGS = 6;

interface Life {
  /** After how many commits the process dies, and on which side of the last one. */
  readonly commits: number;
  readonly where: 'before' | 'after';
  /** Power fails as well: whatever runs is gone. */
  readonly power: boolean;
  readonly seconds: number;
  readonly redelivers: boolean;
  readonly acks: boolean;
}

const life = fc.record<Life>({
  commits: fc.integer({ min: 1, max: 25 }),
  where: fc.constantFrom('before', 'after'),
  power: fc.boolean(),
  seconds: fc.nat(20),
  redelivers: fc.boolean(),
  acks: fc.boolean(),
});

/** What a server knows: the first answer stands, and later ones are the same. */
class Answers {
  readonly byTag = new Map<string, string>();

  take(tag: string, content: string): void {
    const first = this.byTag.get(tag) ?? content;
    expect(content).toBe(first);
    this.byTag.set(tag, first);
  }
}

function connect(process: Process, answers: Answers, { redelivers, acks }: Life): FakeSession {
  const capabilities = [...(redelivers ? (['redeliver'] as const) : []), ...(acks ? (['result-ack'] as const) : [])];
  const session = new FakeSession(serverFacts({}, capabilities));
  session.onSend = (message) => {
    answers.take(message.tag, contentOf(message));
    if (acks) queueMicrotask(() => process.engine.received(session, { type: 'RESULT_ACK', tag: message.tag, jsonB64: 'e30=' }));
  };
  return process.connect(session);
}

/** Everything that is not answered is delivered, or delivered again. */
function deliver(process: Process, answers: Answers): void {
  for (let number = 0; number < TAGS; number++) {
    const payload = { script: `s${number}`, lane: number % 2 === 0 ? 'even' : '' };
    if (!answers.byTag.has(`t${number}`)) process.deliver('RUN_REMOTE_SCRIPT', `t${number}`, payload, { expiresInMs: 3_600_000 });
  }
}

async function live(world: InstructionWorld, answers: Answers, facts: Life): Promise<void> {
  const process = await world.start();
  let commits = 0;
  process.journal.cut(() => {
    commits += 1;
    return commits === facts.commits ? facts.where : undefined;
  });
  connect(process, answers, facts);
  deliver(process, answers);
  await process.settle(facts.seconds * 1_000);
  // A process that was not cut dies now, between two commits.
  process.journal.cut(() => 'before');
  process.drop();
  if (facts.power) for (const { id } of world.tasks.started) world.tasks.interrupt(id);
}

test('A1 to A7, law: whatever dies when, no script runs twice, each tag has one answer, and it is the true one', {
  timeout: 60_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(life, { maxLength: 5 }), async (lives) => {
      const world = new InstructionWorld();
      const answers = new Answers();
      for (let number = 0; number < TAGS; number++) world.script(`s${number}`, `sleep 7 # ${number}`);
      for (const each of lives) await live(world, answers, each);
      const last = await world.start();
      connect(last, answers, { commits: 0, where: 'after', power: false, seconds: 0, redelivers: true, acks: true });
      deliver(last, answers);
      await last.settle(120_000);
      expect(new Set(world.ran).size).toBe(world.ran.length);
      expect([...answers.byTag.keys()].sort()).toEqual(Array.from({ length: TAGS }, (_, number) => `t${number}`));
      for (const [tag, content] of answers.byTag) {
        const ran = world.ran.some((text) => text.endsWith(`# ${tag.slice(1)}`));
        if (content.startsWith('NOT_STARTED')) expect(ran).toBe(false);
        else if (content.includes('out of')) expect(ran).toBe(true);
        else expect(content).toMatch(/^INTERRUPTED: /);
      }
    }),
    { numRuns: 60 },
  );
});
