import { Channel, credentials, Server, ServerCredentials } from '@grpc/grpc-js';
import { LogServiceHandler, type LogServiceParts } from '../../src/adapters/log/grpc-log-handler.js';
import { logServiceDefinition, logServiceImplementation } from '../../src/adapters/log/grpc-log-service.js';
import { GrpcOrderedLog } from '../../src/adapters/log/grpc-ordered-log.js';
import type { NodeName } from '../../src/domain/identity/model.js';
import { nodeReads } from '../../src/domain/log/visibility.js';
import type { Clock } from '../../src/ports/clock.js';
import type { NodeNames } from '../../src/ports/driving/node-names.js';
import type { NodeProposals } from '../../src/ports/driving/node-proposals.js';
import type { PeerNode } from '../../src/ports/driving/node-streams.js';
import type { OrderedLog } from '../../src/ports/log/ordered-log.js';
import { FakeLogger } from '../fakes/fake-logger.js';
import { peer } from './peer.js';

const LIMITS = { 'grpc.max_receive_message_length': 16 * 1024 * 1024 };

/** Any proposal of any node. */
export function everything(log: OrderedLog): NodeProposals {
  return {
    propose: (node, { requestId, ...proposal }, options) =>
      log.propose(
        { ...proposal, ...(requestId === undefined ? {} : { requestId: `${node.identity.nid}/${requestId}` }) },
        options,
      ),
  };
}

const anyName: NodeNames = { bind: async () => {}, nameOf: () => undefined };

interface RigOptions {
  readonly log: OrderedLog;
  readonly clock: Clock;
  readonly service?: Partial<LogServiceParts>;
  readonly peerOf?: () => PeerNode;
  readonly names?: NodeNames;
  /** 0 takes any. */
  readonly port?: number;
  /** Insecure unless given. */
  readonly serverCredentials?: ServerCredentials;
}

/** The log service on a plain server on loopback, every caller being one node. */
export async function logServiceRig({
  log,
  clock,
  service = {},
  port: wanted = 0,
  peerOf = () => peer('n1'),
  names = anyName,
  serverCredentials = ServerCredentials.createInsecure(),
}: RigOptions) {
  const logger = new FakeLogger();
  const handler = new LogServiceHandler({ log, clock, proposals: everything(log), reads: nodeReads, ...service });
  const server = new Server(LIMITS);
  server.addService(logServiceDefinition, logServiceImplementation({ handler, peerOf, names, clock, logger }));
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${wanted}`, serverCredentials, (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const stop = () => {
    server.forceShutdown();
    handler.stop();
  };
  return { handler, logger, port, stop };
}

/** A node's end of it. */
export function remoteLog(port: number, clock: Clock) {
  // Each with a connection of its own, as every node has.
  const options = {
    ...LIMITS,
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_http_proxy': 0,
    'grpc.initial_reconnect_backoff_ms': 100,
  };
  const channel = new Channel(`127.0.0.1:${port}`, credentials.createInsecure(), options);
  return { log: new GrpcOrderedLog({ channel, clock, nodeId: 'here' as NodeName }), close: () => channel.close() };
}
