import { hash, X509Certificate } from 'node:crypto';
import { readPresented } from '../adapters/certificate/certificate-reader.js';
import { FilePairStore } from '../adapters/certificate/file-pair-store.js';
import { readTextFile } from '../adapters/files/text-file.js';
import { type MachineFacts, readMachine } from '../adapters/node/linux-machine.js';
import { decodeEnrolment } from '../domain/certificate/enrolment.js';
import { AgentError } from '../domain/kernel/errors.js';
import type { HostPort } from '../domain/kernel/network.js';
import type { AbsolutePath } from '../domain/kernel/paths.js';
import type { CallOptions } from '../ports/call-options.js';
import type { NodeIdentity } from '../ports/driving/node-streams.js';
import type { Facts } from './facts.js';
import { flatPair } from './paths.js';

/** A machine that is a node: what its certificate says, and where its control plane is. */
export interface EnrolledNode {
  readonly identity: NodeIdentity;
  readonly pairs: FilePairStore;
  readonly servers: readonly HostPort[];
  readonly machine: MachineFacts;
  /** SHA-256 in hex of the root that servers are verified with: it stands for a fleet that has no name. */
  readonly rootFingerprint: string;
  /** Prefix of every absolute path. */
  readonly root: AbsolutePath;
}

const MAX_ENROLMENT_BYTES = 64 * 1024;

/** @throws AgentError `certificate.not_registered`, `certificate.not_written` */
export async function enrolledNode({ paths, config }: Facts, root: AbsolutePath, options: CallOptions): Promise<EnrolledNode> {
  const pairs = new FilePairStore({ folder: paths.certs, flat: flatPair(paths) });
  const { current } = await pairs.load(options);
  if (current === undefined) throw notRegistered(`there is no certificate in ${paths.certs}`);
  const { identity } = readPresented(new X509Certificate(current.certificate).raw, current.ca);
  if (identity?.role !== 'node') throw notRegistered(`the certificate in ${paths.certs} names no node`);
  const servers = config.nodeward.length > 0 ? config.nodeward : await enrolledAt(paths.enrolment, options);
  return { identity, pairs, servers, machine: await readMachine(root), rootFingerprint: hash('sha256', current.ca, 'hex'), root };
}

async function enrolledAt(path: AbsolutePath, options: CallOptions): Promise<readonly HostPort[]> {
  const file = await readTextFile(path, MAX_ENROLMENT_BYTES, options);
  const enrolment = file.found === 'text' ? decodeEnrolment(file.text) : undefined;
  if (enrolment !== undefined) return enrolment.servers;
  throw notRegistered(`neither client.server.nodeward nor ${path} names a control plane`);
}

function notRegistered(problem: string): AgentError {
  return new AgentError('certificate.not_registered', { problem });
}
