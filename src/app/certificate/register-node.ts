import { hostCidrs, osName } from '../../domain/certificate/host.js';
import { completeWish, type RegistrationWish } from '../../domain/certificate/registration.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { KeyMaker } from '../../ports/certificate/key-maker.js';
import type { PairStore, StoredPair } from '../../ports/certificate/pair-store.js';
import type { RegistrationAnswer, RegistrationClient, RegistrationRequest } from '../../ports/certificate/registration-client.js';
import type { Clock } from '../../ports/clock.js';
import type { HostFacts } from '../../ports/node/host-facts.js';

export interface RegisterNodeParts {
  /** For the server as it was given. */
  readonly connect: (server: string) => RegistrationClient;
  readonly host: HostFacts;
  readonly keys: KeyMaker;
  readonly pairs: PairStore;
  readonly clock: Clock;
}

export interface RegisteredAs {
  readonly nid: string;
  readonly pair: StoredPair;
}

/** A packet is lost now and then; who cannot be reached after these never will be. */
const PAUSES_MS = [1_000, 3_000];

/**
 * Makes this machine a node: its pair is on disk, whole and in use, when it resolves. Nothing is read, made or sent before it is sure
 * that nothing is missing, and no token is spent before the root is known. A call whose answer was lost is repeated with the same key,
 * which gives the same answer.
 * @throws AgentError `certificate.incomplete`, `certificate.no_machine_id`, `certificate.root_invalid`, `certificate.token_refused`,
 * `certificate.unknown_account`, `certificate.too_many`, `certificate.untrusted`, `certificate.unusable`, `certificate.not_written`,
 * `link.unreachable`, `link.refused`
 */
export async function registerNode(
  parts: RegisterNodeParts,
  given: { readonly [Key in keyof RegistrationWish]: string | undefined },
  options: CallOptions,
): Promise<RegisteredAs> {
  const { keys, pairs } = parts;
  const wish = completeWish(given);
  const machineId = await machineIdOf(parts.host, options);
  const client = parts.connect(wish.server);
  await client.check(options);
  const { csr, privateKey } = await keys.makeRequest(options);
  const answer = await insisting(parts.clock, client, await requestOf(parts.host, wish, machineId, csr, options), options);
  // A server that knows no requests has made a key of its own, and certified that.
  const pair = await pairs.stage(
    { certificate: answer.certificate, privateKey: answer.privateKey || privateKey, ca: answer.ca },
    options,
  );
  await pairs.activate(pair.serial, options);
  return { nid: answer.nid, pair };
}

async function machineIdOf(host: HostFacts, options: CallOptions): Promise<string> {
  const machineId = (await host.machineId(options))?.trim();
  if (machineId) return machineId;
  throw new AgentError('certificate.no_machine_id', {
    problem: 'neither /etc/machine-id nor /var/lib/dbus/machine-id holds one',
  });
}

async function requestOf(
  host: HostFacts,
  { account, token }: RegistrationWish,
  machineId: string,
  csr: Uint8Array,
  options: CallOptions,
): Promise<RegistrationRequest> {
  const [release, networks] = await Promise.all([host.osRelease(options), host.networks(options)]);
  return { machineId, account, token, os: osName(release), hostCidrs: hostCidrs(networks), csr };
}

async function insisting(
  clock: Clock,
  client: RegistrationClient,
  request: RegistrationRequest,
  options: CallOptions,
): Promise<RegistrationAnswer> {
  for (const pause of PAUSES_MS) {
    try {
      return await client.register(request, options);
    } catch (error) {
      if (!(error instanceof AgentError) || error.code !== 'link.unreachable') throw error;
      await clock.sleep(pause, options);
    }
  }
  return client.register(request, options);
}
