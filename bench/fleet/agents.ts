// A process full of agents, which does what the bench asks of it over the channel it was started with, and ends with it.
import { setTimeout as sleep } from 'node:timers/promises';
import { SimulatedAgent } from './agent.ts';
import type { Answer, CallName, Calls, Question } from './protocol.ts';

/** Registrations under way in one process: a certificate is a few milliseconds of work at either end. */
const REGISTERING = 16;
const LOOK_MS = 25;

const agents: SimulatedAgent[] = [];

type Handlers = { readonly [Name in CallName]: (ask: Calls[Name]['ask']) => Promise<Calls[Name]['answer']> };

const handlers: Handlers = {
  register: async ({ server, tokens, first }) => {
    const queue = [...tokens.entries()];
    const registerSome = async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const [index, token] = next;
        agents.push(await SimulatedAgent.register(server, `sim-${first + index}`, token));
      }
    };
    await Promise.all(Array.from({ length: REGISTERING }, registerSome));
    return {
      callsMs: agents.map(({ registeredInMs }) => registeredInMs),
      heldBack: agents.reduce((sum, { heldBack }) => sum + heldBack, 0),
    };
  },
  start: async ({ overMs }) => {
    const startOne = async (agent: SimulatedAgent, index: number) => {
      await sleep((overMs * index) / agents.length);
      await agent.start();
    };
    await Promise.all(agents.map(startOne));
    return {};
  },
  linked: async () => ({ agents: agents.filter(({ isLinked }) => isLinked).length }),
  arrivals: async ({ revision, withinMs }) => {
    const until = performance.now() + withinMs;
    // Looked at and not waited for: an agent must not have work for each change that is on its way.
    while (performance.now() < until && !agents.every((agent) => agent.arrivalOf(revision) !== undefined)) await sleep(LOOK_MS);
    return { at: agents.flatMap((agent) => agent.arrivalOf(revision) ?? []) };
  },
  beats: async () => ({ roundTripsMs: agents.flatMap(({ beatMs }) => beatMs ?? []) }),
  stop: async () => {
    await Promise.all(agents.map((agent) => agent.stop()));
    return {};
  },
};

async function answer<Name extends CallName>(name: Name, ask: unknown): Promise<unknown> {
  return handlers[name](ask as Calls[Name]['ask']);
}

function tell(message: Answer): void {
  if (process.connected) process.send?.(message);
}

process.on('message', ({ number, name, ask }: Question) => {
  answer(name, ask).then(
    (answered) => tell({ number, answer: answered }),
    (error: unknown) => tell({ number, problem: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});
process.on('disconnect', () => process.exit(0));
