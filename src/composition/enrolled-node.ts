import { hash, X509Certificate } from 'node:crypto';
import { readPresented } from '../adapters/certificate/certificate-reader.js';
import { FilePairStore } from '../adapters/certificate/file-pair-store.js';
import { SealerKeyFile } from '../adapters/certificate/sealer-key-file.js';
import { readTextFile } from '../adapters/files/text-file.js';
import { type MachineFacts, readMachine } from '../adapters/node/linux-machine.js';
import { decodeEnrolment, type EnrolmentFile } from '../domain/certificate/enrolment.js';
import { AgentError } from '../domain/kernel/errors.js';
import type { HostPort } from '../domain/kernel/network.js';
import type { AbsolutePath } from '../domain/kernel/paths.js';
import { registrationId } from '../domain/link/model.js';
import type { CallOptions } from '../ports/call-options.js';
import type { StoredPair } from '../ports/certificate/pair-store.js';
import type { NodeIdentity } from '../ports/driving/node-streams.js';
import type { Sealer } from '../ports/store/sealer.js';
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
  /** For what is secret in the journal. */
  readonly sealer: Sealer;
  /** Prefix of every absolute path. */
  readonly root: AbsolutePath;
}

const MAX_ENROLMENT_BYTES = 64 * 1024;

/** @throws AgentError `certificate.not_registered`, `certificate.not_written`, `store.key_unreadable` */
export async function enrolledNode(
  { paths, config }: Pick<Facts, 'paths' | 'config'>,
  root: AbsolutePath,
  options: CallOptions,
): Promise<EnrolledNode> {
  const pairs = new FilePairStore({ folder: paths.certs, flat: flatPair(paths) });
  const { current } = await pairs.load(options);
  if (current === undefined) throw notRegistered(`there is no certificate in ${paths.certs}`);
  const enrolment = await enrolmentOf(paths.enrolment, options);
  const servers = config.nodeward.length > 0 ? config.nodeward : enrolment?.servers;
  if (servers === undefined) throw notRegistered(`neither client.server.nodeward nor ${paths.enrolment} names a control plane`);
  const identity = identityOf(current, enrolment);
  if (identity === undefined)
    throw notRegistered(`neither the certificate in ${paths.certs} nor ${paths.enrolment} names a node`);
  const keys = new SealerKeyFile(paths.sealingKey);
  const sealer = (await keys.load(options)) ?? (await keys.create(options));
  const machine = await readMachine(root);
  return { identity, pairs, servers, machine, sealer, rootFingerprint: hash('sha256', current.ca, 'hex'), root };
}

async function enrolmentOf(path: AbsolutePath, options: CallOptions): Promise<EnrolmentFile | undefined> {
  const file = await readTextFile(path, MAX_ENROLMENT_BYTES, options);
  return file.found === 'text' ? decodeEnrolment(file.text) : undefined;
}

/** As our control planes write it into the certificate. Others do not: then it is what the registration was answered. */
function identityOf({ certificate, ca, serial }: StoredPair, enrolment: EnrolmentFile | undefined): NodeIdentity | undefined {
  const { identity } = readPresented(new X509Certificate(certificate).raw, ca);
  if (identity?.role === 'node') return identity;
  if (identity !== undefined || enrolment === undefined) return undefined;
  return { role: 'node', aid: enrolment.aid, nid: enrolment.nid, registration: registrationId(serial) };
}

function notRegistered(problem: string): AgentError {
  return new AgentError('certificate.not_registered', { problem });
}
