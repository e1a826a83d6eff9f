import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FilePairStore } from '../../../src/adapters/certificate/file-pair-store.js';
import { GrpcRegistrationClient } from '../../../src/adapters/certificate/grpc-registration-client.js';
import { X509KeyMaker } from '../../../src/adapters/certificate/x509-key-maker.js';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { GrpcControlLink } from '../../../src/adapters/link/grpc-control-link.js';
import { LinkConnections } from '../../../src/adapters/link/link-connections.js';
import { registerNode } from '../../../src/app/certificate/register-node.js';
import { LinkSubsystem } from '../../../src/app/link/link-subsystem.js';
import type { Pair } from '../../../src/ports/certificate/pair-store.js';
import type { ControlLink } from '../../../src/ports/link/control-link.js';
import { FakeHostFacts } from '../../fakes/fake-host-facts.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeNodeRoles } from '../../fakes/fake-node-roles.js';

/**
 * fleet-simulated.ts HOST CA FOLDER: for each line of FOLDER/tokens a node that registers and is nothing but its link, for real. Says as
 * JSON, a line each, what becomes of each of them: `trying`, `failed`, `linked`, `lost`.
 */
const [host = '', ca = '', folder = ''] = process.argv.slice(2);
const tokens = (await readFile(join(folder, 'tokens'), 'utf8')).trim().split('\n');
const options = { signal: new AbortController().signal };
const clock = new SystemClock();

function say(node: number, what: string, why = ''): void {
  process.stdout.write(`${JSON.stringify({ node, what, why, at: Date.now() })}\n`);
}

async function registered(node: number, token: string): Promise<Pair> {
  const facts = new FakeHostFacts();
  facts.id = randomUUID().replaceAll('-', '');
  const certs = join(folder, `${node}`);
  const flat = { ca: `${certs}/ca.crt`, certificate: `${certs}/mtls.crt`, privateKey: `${certs}/mtls.key` };
  const root = { path: ca, sha256: undefined };
  const connect = () => new GrpcRegistrationClient({ host, port: 9191, root, now: () => clock.now() });
  const parts = { connect, host: facts, keys: new X509KeyMaker(), pairs: new FilePairStore({ folder: certs, flat }), clock };
  return (await registerNode(parts, { server: host, account: 'default', token }, options)).pair;
}

/** Tells of each attempt. */
function told(link: ControlLink, node: number): ControlLink {
  return {
    async open(address, facts, given) {
      say(node, 'trying');
      const stream = await link.open(address, facts, given).catch((error: unknown) => {
        say(node, 'failed', String(error));
        throw error;
      });
      void stream.ended.then(({ error }) => say(node, 'lost', String(error)));
      return stream;
    },
    reloadCertificate: () => link.reloadCertificate(),
    close: () => link.close(),
  };
}

async function begin(node: number, token: string): Promise<void> {
  const pair = await registered(node, token);
  const connections = new LinkConnections({ readPair: async () => pair, clock });
  const [instance, hardware, id] = [randomUUID(), randomUUID(), randomUUID()];
  const facts = { instance, boot: 'boot', hardware, journal: { id, counter: 1n }, capabilities: new Set<never>() };
  const subsystem = new LinkSubsystem({
    link: told(new GrpcControlLink({ connections, clock }), node),
    addresses: [{ host, port: 9192 }],
    facts: () => facts,
    roles: new FakeNodeRoles(),
    users: [{ opened: () => say(node, 'linked'), received: () => false, closed: () => {} }],
    version: '0.0.0',
    nodeIp: undefined,
    auditHead: () => undefined,
    newTag: randomUUID,
    clock,
    bootTime: () => clock.monotonic(),
    random: Math.random,
    logger: new FakeLogger(),
  });
  await subsystem.start();
}

// One after the other: registrations are limited, and this is not about them.
for (const [node, token] of tokens.entries()) await begin(node, token);
