import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MAX_UNSENT_BYTES, piecesOf, resizeText } from '../../../src/domain/session/model.js';
import {
  CLOSED_BY_SERVER,
  dialling,
  type SessionAction,
  type SessionEvent,
  type SessionState,
  step,
  UNREAD_INPUT,
} from '../../../src/domain/session/state.js';

/** What comes of the events, one after the other. */
function run(events: readonly SessionEvent[], start: SessionState = dialling(undefined)) {
  let state = start;
  const actions: SessionAction[] = [];
  for (const event of events) {
    const next = step(state, event);
    state = next.state;
    actions.push(...next.actions);
  }
  return { state, actions, text: actions.map(shown).join(' ') };
}

function shown(action: SessionAction): string {
  if (action.do === 'write') return `write(${action.text})`;
  return action.do === 'tell_closed' ? `tell_closed(${action.end.reason})` : action.do;
}

const input = (text: string, unsent = 0): SessionEvent => ({ event: 'input', text, bytes: text.length, unsent });
const dialled: SessionEvent = { event: 'dialled' };
const closeAsked: SessionEvent = { event: 'close_asked' };
const ended: SessionEvent = { event: 'ended', end: { reason: 'bye', error: false } };
const resized: SessionEvent = { event: 'resized', size: { cols: 80, rows: 24 } };
const size = resizeText({ cols: 80, rows: 24 });
const byServer = CLOSED_BY_SERVER.reason;

describe('one session', () => {
  test.each<[string, readonly SessionEvent[], string]>([
    ['opens once it is dialled', [dialled], 'tell_opened'],
    ['keeps input that came before, in order', [input('a'), input('b'), dialled], 'tell_opened write(a) write(b)'],
    ['tells the newest size first', [resized, input('a'), dialled], `tell_opened write(${size}) write(a)`],
    ['writes what comes later', [dialled, input('a'), resized], `tell_opened write(a) write(${size})`],
    ['ends with its service', [dialled, ended, ended, input('a')], 'tell_opened tell_closed(bye) hang_up'],
    ['a close that races the dial is honoured', [closeAsked, dialled], `tell_closed(${byServer}) hang_up hang_up`],
    ['a close is answered once', [dialled, closeAsked, closeAsked], `tell_opened tell_closed(${byServer}) hang_up`],
    ['a lost link is told to nobody', [dialled, { event: 'abandoned' }, ended], 'tell_opened hang_up'],
    ['a second dial changes nothing', [dialled, dialled], 'tell_opened'],
  ])('%s', (_, events, text) => {
    expect(run(events).text).toBe(text);
  });

  test('the size that a session was opened with is told first', () => {
    expect(run([input('a'), dialled], dialling({ cols: 80, rows: 24 })).text).toBe(`tell_opened write(${size}) write(a)`);
  });

  test('input that nobody reads ends it, before the dial and after', () => {
    const half = 'x'.repeat(MAX_UNSENT_BYTES / 2);
    expect(run([input(half), input(half), input('y')]).text).toBe(`tell_closed(${UNREAD_INPUT.reason}) hang_up`);
    const after = run([dialled, input('a', MAX_UNSENT_BYTES - 1), input('b', MAX_UNSENT_BYTES)]);
    expect(after.text).toBe(`tell_opened write(a) tell_closed(${UNREAD_INPUT.reason}) hang_up`);
  });

  test('law: opened at most once and before every write; closed at most once and last; a dial is always hung up in the end', () => {
    const event = fc.oneof(
      fc.constantFrom<SessionEvent>(dialled, closeAsked, ended, resized, { event: 'abandoned' }),
      fc.string({ maxLength: 3 }).map((text) => input(text)),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), (events) => {
        const { actions, state } = run(events);
        const names = actions.map(({ do: name }) => name);
        const [opened, closed] = [names.indexOf('tell_opened'), names.indexOf('tell_closed')];
        expect(names.filter((name) => name === 'tell_opened').length).toBeLessThanOrEqual(1);
        expect(names.filter((name) => name === 'tell_closed').length).toBeLessThanOrEqual(1);
        for (const [at, name] of names.entries()) if (name === 'write') expect(opened >= 0 && opened < at).toBe(true);
        if (closed >= 0) expect(names.slice(closed + 1).every((name) => name === 'hang_up')).toBe(true);
        if (state.phase === 'closed') expect(names.at(-1)).toBe('hang_up');
      }),
    );
  });
});

test('law: pieces are all bytes in order, none longer than asked', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.integer({ min: 1, max: 9 }), (bytes, most) => {
      const pieces = [...piecesOf(bytes, most)];
      expect(pieces.every(({ length }) => length > 0 && length <= most)).toBe(true);
      expect(Buffer.concat(pieces)).toEqual(Buffer.from(bytes));
    }),
  );
});
