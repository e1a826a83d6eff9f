import { afterAll } from 'vitest';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { GrpcControlLink } from '../../../src/adapters/link/grpc-control-link.js';
import { GrpcNodeServer } from '../../../src/adapters/link/grpc-node-server.js';
import { GrpcNodewardCalls } from '../../../src/adapters/link/grpc-nodeward-calls.js';
import { LinkConnections } from '../../../src/adapters/link/link-connections.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { controlLinkContract } from '../../contract/control-link.contract.js';
import { nodewardCallsContract } from '../../contract/nodeward-calls.contract.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import {
  FakeRevocations,
  judgePeer,
  nodePair,
  RecordingCalls,
  RecordingEnrolment,
  RecordingStreams,
  serverPair,
} from '../../support/link-rig.js';
import { ThrowawayPki } from '../../support/throwaway-pki.js';

const pki = new ThrowawayPki();
const pair = nodePair(pki);
const server = serverPair(pki);
const clock = new SystemClock();
afterAll(() => pki.remove());

async function rig() {
  const [streams, calls, enrolment, logger] = [
    new RecordingStreams(),
    new RecordingCalls(),
    new RecordingEnrolment(),
    new FakeLogger(),
  ];
  const revocations = new FakeRevocations();
  const listen = { host: '127.0.0.1', port: 0 };
  const node = new GrpcNodeServer({
    listen,
    pair: () => server,
    judgePeer,
    streams,
    calls,
    enrolment,
    revocations,
    clock,
    logger,
  });
  await node.start();
  const connections = new LinkConnections({ readPair: async () => pair, clock });
  return { streams, calls, node, connections, address: { host: 'localhost', port: node.port } };
}

controlLinkContract('GrpcControlLink', async () => {
  const { streams, node, connections, address } = await rig();
  const link = new GrpcControlLink({ connections, clock });
  return {
    link,
    address,
    // Port 1 of this machine is nobody's.
    nowhere: { host: '127.0.0.1', port: 1 },
    server: streams.facts,
    say: (...messages) => {
      for (const message of messages) void streams.newest.stream.send(message);
    },
    heard: () => streams.newest.received,
    agent: () => streams.newest.stream.agent,
    endStream: (retryMs) => streams.newest.stream.end({ status: 'stopping', message: 'told to', retryMs }),
    kill: () => node.stop(),
    dispose: () => node.stop(),
  };
});

nodewardCallsContract('GrpcNodewardCalls', async () => {
  const { calls, node, connections, address } = await rig();
  return {
    calls: new GrpcNodewardCalls({ connections, address: () => address }),
    told: () => calls.seen.map((line) => line.replace(/^n1 /, '')),
    refuse: () => {
      calls.updateStatus = async () => {
        throw new AgentError('link.refused', { problem: 'told to' });
      };
    },
    goAway: () => node.stop(),
    dispose: async () => {
      connections.close();
      await node.stop();
    },
  };
});
