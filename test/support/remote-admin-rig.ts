import { X509Certificate } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { GrpcAdminClient } from '../../src/adapters/admin/grpc-admin-client.js';
import { GrpcRemoteAdminServer, type GrpcRemoteAdminServerParts } from '../../src/adapters/admin/grpc-remote-admin-server.js';
import { writeAdminPair } from '../../src/adapters/certificate/admin-pair-folder.js';
import { adminPeerJudge } from '../../src/adapters/certificate/admin-peer-judge.js';
import { readValidity } from '../../src/adapters/certificate/certificate-reader.js';
import { SystemClock } from '../../src/adapters/clock/system-clock.js';
import type { AdminGrade, CertificateIdentity } from '../../src/domain/certificate/model.js';
import type { Revocation } from '../../src/domain/certificate/revocation.js';
import { portNumber } from '../../src/domain/kernel/network.js';
import { aid } from '../../src/domain/link/model.js';
import type { CertificateAuthority } from '../../src/ports/certificate/certificate-authority.js';
import type { Pair } from '../../src/ports/certificate/pair-store.js';
import { lasting, newAuthority, newPair, server as serverIdentity } from '../adapters/certificate/support.js';
import { type RunOptions, run } from './cli-rig.js';
import { fleetCliRig } from './fleet-cli-rig.js';
import { FakeRevocations } from './link-rig.js';
import { tempFolder } from './temp-folder.js';

const DAY = 24 * 60 * 60_000;
const options = { signal: new AbortController().signal };

export function adminIdentity(grade: AdminGrade, name: string = grade): CertificateIdentity {
  return { role: 'admin', aid: aid('acme'), name, grade };
}

export const serialOfPair = ({ certificate }: Pair) => readValidity(new X509Certificate(certificate)).serial;

/** Revocations that a test makes, told as the store's would be. */
class TestRevocations extends FakeRevocations {
  isLoaded = true;
  readonly #revoked: Revocation[] = [];

  find(of: string, id: string): Revocation | undefined {
    return this.#revoked.find((each) => each.of === of && each.id === id);
  }

  revokePair(pair: Pair): void {
    const id = serialOfPair(pair);
    this.#revoked.push({ of: 'serial', id, from: 0, kind: 'revoked', reason: 'it was stolen', until: Number.MAX_SAFE_INTEGER });
    this.revoke('serial', id);
  }
}

/** A control plane with node `n1`, whose admin API is served over TLS on loopback by a real authority. */
export async function remoteAdminRig(
  parts: Partial<GrpcRemoteAdminServerParts> = {},
  serverHosts?: (authority: CertificateAuthority) => Promise<Pair>,
) {
  const fleet = await fleetCliRig();
  const { resources, operations, explainer, logger } = fleet.admin;
  const authority = await newAuthority('admins');
  const roots = [authority.root];
  const revocations = new TestRevocations();
  const own = await (serverHosts ?? ((root) => newPair(root, serverIdentity)))(authority);
  const clock = { ahead: 0 };
  const now = () => Date.now() + clock.ahead;
  const server = new GrpcRemoteAdminServer({
    listen: { host: '127.0.0.1', port: 0 },
    pair: () => ({ ...own, clientRoots: [authority.root] }),
    judge: adminPeerJudge({ roots: () => roots, revocations, now }),
    revocations,
    resources,
    operations,
    explainer,
    fleet: fleet.fleetParts,
    clock: new SystemClock(),
    logger,
    ...parts,
  });
  await server.start();
  onTestFinished(() => server.stop());
  const pair = (grade: AdminGrade, name?: string) => newPair(authority, adminIdentity(grade, name), lasting(-DAY, 300 * DAY));
  const clientWith = (shown: Pair, host = '127.0.0.1') => {
    const port = portNumber(server.port);
    if (port === undefined) throw new Error('it does not listen');
    const made = new GrpcAdminClient({ host, port, pair: shown });
    onTestFinished(() => made.close());
    return made;
  };
  const as = async (grade: AdminGrade, name?: string) => clientWith(await pair(grade, name));
  /** A folder as `cert create` makes it. */
  const folderOf = async (shown: Pair) => {
    const folder = `${await tempFolder()}/cert`;
    await writeAdminPair(folder, shown, options);
    return folder;
  };
  const remoteCli = async (shown: Pair, args: readonly string[], runOptions?: RunOptions) =>
    run([...args, '--admin', `127.0.0.1:${server.port}`, '--admin-cert', await folderOf(shown)], runOptions);
  return {
    ...fleet,
    authority,
    revocations,
    server,
    serverClock: clock,
    pair,
    clientWith,
    as,
    folderOf,
    remoteCli,
    adminLog: logger,
  };
}
