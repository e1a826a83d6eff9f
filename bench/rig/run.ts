// node bench/rig/run.ts: measures, and writes a line of JSON per sample to standard output, or to --out. Needs root.
import { appendFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { buildTools } from './build.ts';
import { cases } from './cases.ts';
import { commandPeer, peers } from './peers.ts';
import { measure } from './rounds.ts';

const { values } = parseArgs({
  options: {
    cases: { type: 'string', default: cases.map(({ name }) => name).join(',') },
    peers: { type: 'string', default: peers.map(({ name }) => name).join(',') },
    extra: { type: 'string', multiple: true, default: [] },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    idle: { type: 'string', default: '9000' },
    'quiet-wait': { type: 'string', default: '240' },
    out: { type: 'string' },
  },
});

function named<T extends { readonly name: string }>(all: readonly T[], list: string): readonly T[] {
  return list.split(',').map((name) => {
    const found = all.find((each) => each.name === name);
    if (found === undefined) throw new Error(`${name} is none of ${all.map((each) => each.name).join(', ')}`);
    return found;
  });
}

/** What was begun is undone: peers stopped, namespaces removed. */
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort(new Error(signal)));

const note = (text: string) => console.error(text);
const own = values.extra.map((text) => {
  const [name = '', ...command] = text.split('=');
  return commandPeer(name, name, 0, command.join('='));
});
try {
  await buildTools(note);
  await measure(
    {
      cases: named(cases, values.cases),
      peers: [...named(peers, values.peers), ...own],
      rounds: Number(values.rounds),
      effort: { seconds: Number(values.seconds), idle: Number(values.idle) },
      quietMs: Number(values['quiet-wait']) * 1_000,
      signal: stop.signal,
    },
    (sample) => {
      const line = `${JSON.stringify(sample)}\n`;
      if (values.out === undefined) process.stdout.write(line);
      else appendFileSync(values.out, line);
    },
    note,
  );
} catch (error) {
  note(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
