import { randomUUID } from 'node:crypto';
import {
  type ClientOptions,
  type ClientReadableStream,
  type ClientUnaryCall,
  credentials,
  type CallOptions as GrpcCallOptions,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js';
import type { NodeName } from '../../domain/identity/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { checkProposal } from '../../domain/log/judge.js';
import type { Cursor, LogFrame, Proposal, ProposeResult, Snapshot } from '../../domain/log/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { OrderedLog } from '../../ports/log/ordered-log.js';
import * as wire from '../generated/holdfast/log/v1/log.js';
import { isServiceError } from '../grpc/grpc-errors.js';
import { fromLogError, NODE_ID } from './grpc-log-errors.js';
import { FrameReader, SnapshotReader } from './grpc-log-frames.js';
import { cursorFromWire, proposalToWire, resultFromWire } from './grpc-log-mapping.js';

/** How long the outcome of a proposal is asked for (engine.md E10), and between two questions. */
const PROPOSE_MS = 5_000;
const ASK_AGAIN_MS = 100;
/** No answer to a question after this is a server that hangs. */
const CALL_MS = 10_000;

export interface GrpcOrderedLogParts {
  /** To the control plane, authenticated, receiving up to 16 MiB a message; its owner closes it. */
  readonly channel: NonNullable<ClientOptions['channelOverride']>;
  readonly clock: Clock;
  /** Under which this node stands in resources. */
  readonly nodeId: NodeName;
}

type Send<Request, Response> = (
  request: Request,
  metadata: Metadata,
  options: Partial<GrpcCallOptions>,
  callback: (error: ServiceError | null, response: Response) => void,
) => ClientUnaryCall;

/**
 * The log of a control plane, of which this node sees its part: revisions may skip, frames follow on each other. Beside what `OrderedLog`
 * says, calls reject with `link.unreachable` and `link.refused`, and `propose` with `log.outcome_unknown` when nobody has told within 5 s
 * what became of it, and with `log.denied` and `log.too_many`.
 */
export class GrpcOrderedLog implements OrderedLog {
  readonly #client: wire.LogServiceClient;
  readonly #clock: Clock;
  readonly #nodeId: NodeName;
  #connecting: Promise<boolean> | undefined;

  constructor({ channel, clock, nodeId }: GrpcOrderedLogParts) {
    // Address and credentials are the channel's.
    this.#client = new wire.LogServiceClient('', credentials.createInsecure(), { channelOverride: channel });
    this.#clock = clock;
    this.#nodeId = nodeId;
  }

  async propose(proposal: Proposal, { signal }: CallOptions): Promise<ProposeResult> {
    signal.throwIfAborted();
    checkProposal(proposal);
    const requestId = proposal.requestId ?? randomUUID();
    const request = proposalToWire(proposal, requestId);
    const end = this.#clock.monotonic() + PROPOSE_MS;
    let asked: AgentError | undefined;
    for (let left = PROPOSE_MS; left > 0; left = end - this.#clock.monotonic()) {
      if (!(await this.#connected(left, signal))) {
        // A channel that was closed meanwhile says so at once.
        await this.#clock.sleep(ASK_AGAIN_MS, { signal });
        continue;
      }
      try {
        return resultFromWire(await this.#unary(this.#client.propose.bind(this.#client), request, left, signal));
      } catch (error) {
        if (signal.aborted || !(error instanceof AgentError && error.code === 'link.unreachable')) throw error;
        // It may have been written: the same id again tells (engine.md E7).
        asked = error;
        await this.#clock.sleep(ASK_AGAIN_MS, { signal });
      }
    }
    signal.throwIfAborted();
    if (asked === undefined)
      throw new AgentError('log.not_written', { problem: 'the control plane cannot be reached', remedy: REACH });
    throw new AgentError(
      'log.outcome_unknown',
      { problem: `${asked.message} (request id ${requestId})`, requestId },
      { cause: asked },
    );
  }

  async snapshot(prefix: string, { signal }: CallOptions): Promise<Snapshot> {
    signal.throwIfAborted();
    const reader = new SnapshotReader();
    for await (const page of this.#stream(() => this.#client.snapshot({ prefix }), signal)) {
      const whole = reader.take(page);
      if (whole !== undefined) return whole;
    }
    signal.throwIfAborted();
    throw cutShort();
  }

  async head({ signal }: CallOptions): Promise<Cursor> {
    signal.throwIfAborted();
    const { cursor } = await this.#unary(this.#client.head.bind(this.#client), {}, CALL_MS, signal);
    return cursorFromWire(cursor);
  }

  async *watch(from: Cursor, { signal }: CallOptions): AsyncGenerator<LogFrame, void, undefined> {
    if (signal.aborted) return;
    const reader = new FrameReader(from);
    const metadata = new Metadata();
    metadata.set(NODE_ID, this.#nodeId);
    for await (const message of this.#stream(() => this.#client.watch({ from }, metadata), signal)) {
      const frame = reader.take(message);
      if (signal.aborted) return;
      if (frame !== undefined) yield frame;
    }
    if (!signal.aborted) throw cutShort();
  }

  /** Whether a call is sent now: what was not sent has certainly not been written. Who waits goes on in the order of the calls. */
  async #connected(withinMs: number, signal: AbortSignal): Promise<boolean> {
    this.#connecting ??= new Promise((resolve) => {
      this.#client.waitForReady(Date.now() + withinMs, (error) => {
        this.#connecting = undefined;
        resolve(error === undefined);
      });
    });
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    this.#connecting.then(resolve);
    return promise.finally(() => signal.removeEventListener('abort', onAbort));
  }

  #unary<Request, Response>(
    send: Send<Request, Response>,
    request: Request,
    withinMs: number,
    signal: AbortSignal,
  ): Promise<Response> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const call = send(request, new Metadata(), { deadline: Date.now() + withinMs }, (error, response) => {
        signal.removeEventListener('abort', onAbort);
        if (error === null) resolve(response);
        else reject(signal.aborted ? signal.reason : fromLogError(error));
      });
      const onAbort = () => call.cancel();
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** Ends without an error on abort. */
  async *#stream<Response>(
    open: () => ClientReadableStream<Response>,
    signal: AbortSignal,
  ): AsyncGenerator<Response, void, undefined> {
    const call = open();
    const onAbort = () => call.cancel();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      yield* call;
    } catch (error) {
      if (signal.aborted) return;
      throw isServiceError(error) ? fromLogError(error) : error;
    } finally {
      signal.removeEventListener('abort', onAbort);
      // What comes after the end is nobody's: without a listener it would end the process.
      call.on('error', () => {});
      call.cancel();
    }
  }
}

const REACH = 'check the address, the name service and the firewall on the way to the control plane';

function cutShort(): AgentError {
  return new AgentError('link.unreachable', { problem: 'the control plane has ended the stream in the middle' });
}
