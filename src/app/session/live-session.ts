import { closedFrame, dataFrame, openedFrame } from '../../domain/session/frames.js';
import {
  FRAME_BYTES,
  INPUT_PIECE_BYTES,
  piecesOf,
  type SessionEnd,
  type SessionId,
  type SessionTarget,
  type TerminalSize,
} from '../../domain/session/model.js';
import { dialling, type SessionAction, type SessionEvent, type SessionState, step } from '../../domain/session/state.js';
import type { ServiceDialer, ServiceSocket } from '../../ports/session/service-dialer.js';
import type { LinkSession } from '../link/link-session.js';

export interface LiveSessionParts {
  readonly id: SessionId;
  readonly target: SessionTarget;
  readonly dialer: ServiceDialer;
  /** The stream that it belongs to. */
  readonly link: LinkSession;
  /** Why it may not be; undefined when it may. Resolves before anything is dialled. */
  readonly admitted: () => Promise<string | undefined>;
  /** Once: nothing of it is left to be told to the server. */
  readonly onClosed: (session: LiveSession, end: SessionEnd) => void;
}

const ABANDONED: SessionEnd = { reason: 'the link was lost', error: true };

/** One session at this node, from its `OPEN_STREAM` to its `STREAM_CLOSED`. */
export class LiveSession {
  readonly #parts: LiveSessionParts;
  readonly #abort = new AbortController();
  /** Characters may be cut anywhere by the frames that they come in. */
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  #state: SessionState;
  #socket: ServiceSocket | undefined;

  constructor(parts: LiveSessionParts) {
    this.#parts = parts;
    this.#state = dialling(parts.target.size);
  }

  get id(): SessionId {
    return this.#parts.id;
  }

  /** Once. */
  start(): void {
    void this.#run();
  }

  input(bytes: Uint8Array): void {
    for (const piece of piecesOf(bytes, INPUT_PIECE_BYTES)) {
      const text = this.#decoder.decode(piece, { stream: true });
      if (text !== '') this.#step({ event: 'input', text, bytes: piece.length, unsent: this.#socket?.unsent ?? 0 });
    }
  }

  resize(size: TerminalSize): void {
    this.#step({ event: 'resized', size });
  }

  /** The server has asked for it. */
  close(): void {
    this.#step({ event: 'close_asked' });
  }

  /** It cannot go on. */
  fail(reason: string): void {
    this.#step({ event: 'ended', end: { reason, error: true } });
  }

  /** Its stream is gone: nothing is told to anybody. */
  abandon(): void {
    if (!this.#isClosed) this.#parts.onClosed(this, ABANDONED);
    this.#step({ event: 'abandoned' });
  }

  get #isClosed(): boolean {
    return this.#state.phase === 'closed';
  }

  async #run(): Promise<void> {
    const { dialer, target, admitted } = this.#parts;
    try {
      const refusal = await admitted();
      if (refusal !== undefined) return this.fail(refusal);
      if (this.#isClosed) return;
      this.#socket = await dialer.open(target, { signal: this.#abort.signal });
      this.#step({ event: 'dialled' });
      await this.#forward(this.#socket);
    } catch (error) {
      this.fail(error instanceof Error ? error.message : String(error));
    }
  }

  /** At the pace of the link, so that a service that says more than it takes is made to wait. */
  async #forward({ output, ended }: ServiceSocket): Promise<void> {
    const { link, id } = this.#parts;
    for await (const bytes of output) {
      for (const piece of piecesOf(bytes, FRAME_BYTES)) {
        if (this.#isClosed) return;
        const { buffer, byteOffset, length } = piece;
        await link.sendBehind(dataFrame(id, Buffer.from(buffer, byteOffset, length).toString('base64')));
      }
    }
    this.#step({ event: 'ended', end: await ended });
  }

  #step(event: SessionEvent): void {
    const { state, actions } = step(this.#state, event);
    this.#state = state;
    for (const action of actions) this.#do(action);
  }

  #do(action: SessionAction): void {
    const { link, id, onClosed } = this.#parts;
    switch (action.do) {
      case 'tell_opened':
        void link.sendBehind(openedFrame(id));
        return;
      case 'write':
        this.#socket?.send(action.text);
        return;
      case 'tell_closed':
        onClosed(this, action.end);
        void link.sendBehind(closedFrame(id, action.end));
        return;
      case 'hang_up':
        this.#abort.abort();
        this.#socket?.close();
        return;
    }
  }
}
