import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import {
  CLEAR_SCREEN,
  type Console,
  guarded,
  json,
  paint,
  painted,
  structured,
  table,
  yaml,
} from '../../../src/adapters/cli/output.js';
import { fleetCliRig } from '../../support/fleet-cli-rig.js';
import { n1, settle, tagOf } from '../../support/fleet-rig.js';

const HOSTILE = '\u001b[2J\u202eok\nerror: all is lost\u009b';
const HOSTILE_SHOWN = '\\u001b[2J\\u202eok\\u000aerror: all is lost\\u009b';
const hasCommand = /(?!\n)[\p{Cc}\u202e]/u;

function consoleOf(colour: boolean) {
  const written: string[] = [];
  const console: Console = {
    out: (text) => void written.push(text),
    err: (text) => void written.push(text),
    write: async (bytes) => void written.push(Buffer.from(bytes).toString()),
    colour,
    interactive: colour,
  };
  return { console, written };
}

describe('what a peer says is printed and does nothing', () => {
  test('a row stays a line, and colours of our own do not move its columns', () => {
    const { console } = consoleOf(true);
    expect(
      table(
        ['A', 'B'],
        [
          [painted(console, 'green', 'ok'), 'x'],
          [HOSTILE, 'y'],
        ],
      ),
    ).toBe(
      [
        `${'A'.padEnd(HOSTILE_SHOWN.length)}  B`,
        `${paint(console, 'green', 'ok')}${' '.repeat(HOSTILE_SHOWN.length - 2)}  x`,
        `${HOSTILE_SHOWN}  y`,
        '',
      ].join('\n'),
    );
  });

  test.each(['json', 'yaml'] as const)('as %s it is the same value', (format) => {
    const value = { [`k${HOSTILE}`]: [HOSTILE, 'plain', '\u202eplain', 12, null], count: 3n };
    const text = structured(format, value);
    expect(text).not.toMatch(hasCommand);
    const read: unknown = format === 'json' ? JSON.parse(text) : parse(text);
    expect(read).toEqual({ ...value, count: 3 });
  });

  test('a line of JSON is one line', () => {
    expect(json({ a: HOSTILE })).toBe('{"a":"\\u001b[2J\\u202eok\\nerror: all is lost\\u009b"}\n');
    expect(yaml({ a: 'plain' })).toBe('a: plain\n');
  });

  test('what a verb forgets is held up before the terminal; colours and a cleared screen are not', async () => {
    const { console, written } = consoleOf(true);
    const { out, err, write } = guarded(console);
    out(`${paint(console, 'red', 'error')}: \u001b[1A\u001b[2K\u001b]52;c;eA==\u0007\n`);
    err('\u001b[H\u001b[2J and more');
    out(CLEAR_SCREEN);
    await write(Buffer.from('\u001b[1m'));
    expect(written).toEqual([
      '\u001b[31merror\u001b[39m: \\u001b[1A\\u001b[2K\\u001b]52;c;eA==\\u0007\n',
      '\\u001b[H\\u001b[2J and more',
      CLEAR_SCREEN,
      '\u001b[1m',
    ]);
    const plain = consoleOf(false);
    guarded(plain.console).out('\u001b[31mred');
    expect(plain.written).toEqual(['\\u001b[31mred']);
  });

  test.each([
    ['events'],
    ['events', '-o', 'json'],
    ['nodes'],
    ['nodes', '-o', 'yaml'],
    ['describe', `node/${n1}`],
    ['results', n1],
    ['results', n1, 't1'],
    ['results', n1, 't1', '-o', 'json'],
    ['status'],
  ])('%s %s %s', async (...args) => {
    const { cli, connect, presence, send, admin } = await fleetCliRig();
    const { beat, say } = await connect();
    await beat('b', { version: HOSTILE });
    presence.problem(n1, `DUPLICATE_NODE: ${HOSTILE}`);
    await send({ tag: tagOf('t1') });
    await settle();
    await say('ERROR', 't1', HOSTILE);
    await send({ tag: tagOf('t2'), by: HOSTILE });
    await settle();
    await say(`${HOSTILE}_RESPONSE`, 't2');
    admin.operations.tell({ subject: HOSTILE, message: HOSTILE });
    admin.operations.current = {
      ...admin.operations.current,
      problems: [{ subject: 'node', reason: HOSTILE, since: undefined, remedy: HOSTILE }],
      link: { ...none, lastError: { message: `revoked: ${HOSTILE}`, at: 1 } },
    };
    const { out, err } = await cli(args);
    expect(`${out}${err}`).toMatch(/all is lost/);
    expect(`${out}${err}`).not.toMatch(hasCommand);
    if (!args.includes('t1')) expect(`${out}${err}`).not.toMatch(/^error: all is lost/m);
  });
});

const none = { connected: undefined, lostSince: undefined, nextAttemptAt: undefined };
