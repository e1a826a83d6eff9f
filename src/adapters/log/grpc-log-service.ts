import type {
  handleServerStreamingCall,
  handleUnaryCall,
  ServerUnaryCall,
  ServerWritableStream,
  UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { type NodeName, nodeName } from '../../domain/identity/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { NodeNames } from '../../ports/driving/node-names.js';
import type { PeerNode } from '../../ports/driving/node-streams.js';
import type { Logger } from '../../ports/logger.js';
import { LogServiceService } from '../generated/holdfast/log/v1/log.js';
import { toStatus } from '../grpc/grpc-errors.js';
import { NODE_ID } from './grpc-log-errors.js';
import type { LogServiceHandler } from './grpc-log-handler.js';
import { CallOutlet, type Outlet } from './grpc-log-outlet.js';

const asItIs = (message: Uint8Array): Buffer => Buffer.from(message.buffer, message.byteOffset, message.byteLength);

/** The generated service, but that what is streamed comes encoded: once for all nodes. */
export const logServiceDefinition = {
  ...LogServiceService,
  snapshot: { ...LogServiceService.snapshot, responseSerialize: asItIs },
  watch: { ...LogServiceService.watch, responseSerialize: asItIs },
};

type AnyCall = ServerUnaryCall<unknown, unknown> | ServerWritableStream<unknown, unknown>;

export interface LogServiceBinding {
  readonly handler: LogServiceHandler;
  /** The node that calls; judged anew for each call. @throws AgentError when it may not */
  readonly peerOf: (call: AnyCall) => PeerNode;
  readonly names: NodeNames;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What a gRPC server is given together with `logServiceDefinition`. */
export function logServiceImplementation({
  handler,
  peerOf,
  names,
  clock,
  logger,
}: LogServiceBinding): UntypedServiceImplementation {
  const failed = (error: unknown, { aborted }: AbortSignal) => {
    if (!aborted && !(error instanceof AgentError)) logger.error('a call of the log failed', { error });
    return toStatus(error);
  };
  const unary =
    <Request, Response>(
      handle: (node: PeerNode, request: Request, options: CallOptions) => Promise<Response>,
    ): handleUnaryCall<Request, Response> =>
    (call, callback) => {
      const signal = signalOf(call);
      const answer = async () => handle(peerOf(call), call.request, { signal });
      answer().then(
        (response) => callback(null, response),
        (error: unknown) => callback(failed(error, signal)),
      );
    };
  const streaming =
    <Request>(
      handle: (node: PeerNode, request: Request, outlet: Outlet, options: CallOptions) => Promise<void>,
    ): handleServerStreamingCall<Request, Uint8Array> =>
    (call) => {
      const signal = signalOf(call);
      const answer = async () => {
        const node = peerOf(call);
        const name = claimedName(call);
        if (name !== undefined) await names.bind(node, name, { signal });
        await handle(node, call.request, new CallOutlet(call, signal, clock), { signal });
      };
      answer().then(
        () => call.end(),
        (error: unknown) => call.emit('error', failed(error, signal)),
      );
    };
  return {
    head: unary((_node, _request: object, options) => handler.head(options)),
    propose: unary(handler.propose.bind(handler)),
    snapshot: streaming(handler.snapshot.bind(handler)),
    watch: streaming(handler.watch.bind(handler)),
  };
}

/** The name that a node says it has, where it opens a watch. */
function claimedName({ metadata }: AnyCall): NodeName | undefined {
  const [text] = metadata.get(NODE_ID);
  return typeof text === 'string' ? nodeName(text) : undefined;
}

function signalOf(call: AnyCall): AbortSignal {
  const controller = new AbortController();
  call.once('cancelled', () => controller.abort());
  if (call.cancelled) controller.abort();
  return controller.signal;
}
