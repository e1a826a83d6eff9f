import type { LinkMessage } from '../../domain/link/model.js';
import { closeFrame, dataFrame, type NodeFrame, openFrame, resizeFrame } from '../../domain/session/frames.js';
import { FRAME_BYTES, piecesOf, type SessionEnd, type SessionId, type SessionTarget } from '../../domain/session/model.js';
import type { SessionCaller, SessionInput } from '../../ports/driving/remote-sessions.js';
import type { NodeSession } from '../link/node-session.js';

/** Output that the caller has not taken. The protocol cannot slow the node down, so that more ends the session. */
export const MAX_UNREAD_BYTES = 8 * 1024 * 1024;

const SLOW: SessionEnd = { reason: `the output is not read: more than ${MAX_UNREAD_BYTES} bytes wait`, error: true };
const BROKEN: SessionEnd = { reason: 'the node sent a frame that is no base64', error: true };
export const LINK_LOST: SessionEnd = { reason: 'the link to the node was lost', error: true };
const GIVEN_UP: SessionEnd = { reason: 'closed by its caller', error: false };

/** One session between a caller of this server and a node. */
export class RelayedSession {
  readonly id: SessionId;
  readonly node: NodeSession;
  readonly #caller: SessionCaller;
  readonly #opened = Promise.withResolvers<void>();
  readonly #unread: Uint8Array[] = [];
  #unreadBytes = 0;
  #isOpen = false;
  #end: SessionEnd | undefined;
  #wake: () => void = () => {};

  constructor(id: SessionId, node: NodeSession, caller: SessionCaller) {
    this.id = id;
    this.node = node;
    this.#caller = caller;
  }

  /** Resolves when the node has said anything, or it is over. */
  get answered(): Promise<void> {
    return this.#opened.promise;
  }

  get isOver(): boolean {
    return this.#end !== undefined;
  }

  /** @throws nothing: a node whose stream is gone ends it */
  async ask(target: SessionTarget): Promise<void> {
    if (!(await this.#send(openFrame(this.id, target)))) this.finish(LINK_LOST);
  }

  /** Until it is over and its output has been taken. */
  async run(): Promise<SessionEnd> {
    for (;;) {
      const next = this.#unread.shift();
      if (next !== undefined) {
        this.#unreadBytes -= next.length;
        await this.#caller.output(next);
      } else if (this.#end !== undefined) return this.#end;
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }

  received(frame: NodeFrame): void {
    if (this.#end !== undefined) return;
    switch (frame.frame) {
      case 'opened':
        this.#open();
        return;
      case 'data':
        if (frame.bytes === undefined) this.#giveUp(BROKEN);
        else this.#take(frame.bytes);
        return;
      case 'closed':
        this.finish(frame.end);
        return;
    }
  }

  /** The caller has no more use for it, and the node is told. */
  close(end = GIVEN_UP): void {
    this.#unread.length = 0;
    this.#giveUp(end);
  }

  /** It is over, and the node knows. */
  finish(end: SessionEnd): void {
    this.#end ??= end;
    this.#opened.resolve();
    this.#wake();
  }

  #giveUp(end: SessionEnd): void {
    if (this.#end !== undefined) return;
    this.finish(end);
    void this.#send(closeFrame(this.id));
  }

  #open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#opened.resolve();
    this.#caller.opened();
    this.#forward().catch(() => this.close());
  }

  #take(bytes: Uint8Array): void {
    this.#unread.push(bytes);
    this.#unreadBytes += bytes.length;
    if (this.#unreadBytes > MAX_UNREAD_BYTES) this.#giveUp(SLOW);
    this.#wake();
  }

  /** One frame at a time, so that the node's stream always has room for what else it carries. */
  async #forward(): Promise<void> {
    for await (const input of this.#caller.input) {
      if (this.isOver) return;
      for (const frame of this.#framesOf(input)) await this.#send(frame);
    }
  }

  *#framesOf(input: SessionInput): Generator<LinkMessage> {
    if (input.what === 'size') yield resizeFrame(this.id, input.size);
    else
      for (const { buffer, byteOffset, length } of piecesOf(input.bytes, FRAME_BYTES)) {
        yield dataFrame(this.id, Buffer.from(buffer, byteOffset, length).toString('base64'));
      }
  }

  #send(frame: LinkMessage): Promise<boolean> {
    return this.node.send({ ...frame, epoch: this.node.epoch });
  }
}
