import { MAX_UNSENT_BYTES, resizeText, type SessionEnd, type TerminalSize } from './model.js';

/** Where one session stands. `closed` is final. */
export type SessionState =
  | {
      readonly phase: 'dialling';
      /** Input that came before the service was there. */
      readonly texts: readonly string[];
      readonly bytes: number;
      readonly size: TerminalSize | undefined;
    }
  | { readonly phase: 'open' }
  | { readonly phase: 'closed' };

export type SessionEvent =
  | { readonly event: 'dialled' }
  /** `unsent`: bytes that the service has not taken, without these. */
  | { readonly event: 'input'; readonly text: string; readonly bytes: number; readonly unsent: number }
  | { readonly event: 'resized'; readonly size: TerminalSize }
  /** By the service, or since it cannot go on. */
  | { readonly event: 'ended'; readonly end: SessionEnd }
  | { readonly event: 'close_asked' }
  /** The stream it belongs to is gone. */
  | { readonly event: 'abandoned' };

export type SessionAction =
  | { readonly do: 'tell_opened' }
  | { readonly do: 'write'; readonly text: string }
  | { readonly do: 'tell_closed'; readonly end: SessionEnd }
  /** The connection, and the dial when it goes on. */
  | { readonly do: 'hang_up' };

export interface Step {
  readonly state: SessionState;
  readonly actions: readonly SessionAction[];
}

export const CLOSED_BY_SERVER: SessionEnd = { reason: 'closed by the control plane', error: false };
export const UNREAD_INPUT: SessionEnd = {
  reason: `the service does not read its input: more than ${MAX_UNSENT_BYTES} bytes wait`,
  error: true,
};

const CLOSED: SessionState = { phase: 'closed' };

/** @param size of the terminal, told to the service first */
export function dialling(size: TerminalSize | undefined): SessionState {
  return { phase: 'dialling', texts: [], bytes: 0, size };
}

/** Opened is told at most once and before all output, closed at most once and last; a dial that ends after the close is hung up. */
export function step(state: SessionState, event: SessionEvent): Step {
  if (state.phase === 'closed') return { state, actions: event.event === 'dialled' ? [{ do: 'hang_up' }] : [] };
  switch (event.event) {
    case 'dialled':
      return state.phase === 'open' ? { state, actions: [] } : { state: { phase: 'open' }, actions: opening(state) };
    case 'input':
      return takeInput(state, event);
    case 'resized': {
      const { size } = event;
      if (state.phase === 'dialling') return { state: { ...state, size }, actions: [] };
      return { state, actions: [{ do: 'write', text: resizeText(size) }] };
    }
    case 'ended':
      return { state: CLOSED, actions: [{ do: 'tell_closed', end: event.end }, { do: 'hang_up' }] };
    case 'close_asked':
      return { state: CLOSED, actions: [{ do: 'tell_closed', end: CLOSED_BY_SERVER }, { do: 'hang_up' }] };
    case 'abandoned':
      return { state: CLOSED, actions: [{ do: 'hang_up' }] };
  }
}

function opening({ texts, size }: Extract<SessionState, { phase: 'dialling' }>): readonly SessionAction[] {
  const first = size === undefined ? texts : [resizeText(size), ...texts];
  return [{ do: 'tell_opened' }, ...first.map((text) => ({ do: 'write', text }) as const)];
}

function takeInput(
  state: Exclude<SessionState, { phase: 'closed' }>,
  { text, bytes, unsent }: Extract<SessionEvent, { event: 'input' }>,
): Step {
  const waiting = state.phase === 'dialling' ? state.bytes : unsent;
  if (waiting + bytes > MAX_UNSENT_BYTES) return step(state, { event: 'ended', end: UNREAD_INPUT });
  if (state.phase === 'open') return { state, actions: [{ do: 'write', text }] };
  return { state: { ...state, texts: [...state.texts, text], bytes: waiting + bytes }, actions: [] };
}
