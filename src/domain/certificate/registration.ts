import { AgentError, type ErrorCode } from '../kernel/errors.js';

/** What `register` is given. */
export interface RegistrationWish {
  readonly server: string;
  readonly account: string;
  readonly token: string;
}

/**
 * Trimmed, and complete: looked at before anything else, so that nothing has been touched or sent when something is missing.
 * @throws AgentError `certificate.incomplete`, naming all that is missing
 */
export function completeWish(wish: { readonly [Key in keyof RegistrationWish]: string | undefined }): RegistrationWish {
  const [server, account, token] = [wish.server, wish.account, wish.token].map((each) => (each ?? '').trim());
  const missing = Object.entries({ server, account, token }).flatMap(([name, value]) => (value ? [] : [name]));
  // What the configuration's examples write for "unset".
  const unset = Object.entries({ server, account, token }).flatMap(([name, value]) => (value === 'xxxxx' ? [name] : []));
  if (!server || !account || !token || unset.length > 0) {
    throw new AgentError('certificate.incomplete', { problem: `missing: ${[...missing, ...unset].join(', ')}` });
  }
  return { server, account, token };
}

/** How a call that is no success ended, by the names of gRPC's statuses. */
export type FailedStatus =
  | 'UNAUTHENTICATED'
  | 'PERMISSION_DENIED'
  | 'NOT_FOUND'
  | 'INVALID_ARGUMENT'
  | 'UNAVAILABLE'
  | 'DEADLINE_EXCEEDED'
  | 'RESOURCE_EXHAUSTED'
  | 'UNIMPLEMENTED'
  | 'OTHER';

/** How far one comes towards the server; found out by trying step by step after a failure. */
export type Reach =
  | { readonly stage: 'name'; readonly detail: string }
  | { readonly stage: 'closed'; readonly detail: string }
  | { readonly stage: 'silent'; readonly detail: string }
  | { readonly stage: 'tls'; readonly detail: string }
  /** The server ended the connection when it saw our certificate. */
  | { readonly stage: 'refused'; readonly detail: string }
  | { readonly stage: 'through' };

export interface CallFailure {
  readonly status: FailedStatus;
  /** What the server, or the transport, said. */
  readonly details: string;
  /** Of a call that did not get through. */
  readonly reach?: Reach | undefined;
  /** That this machine's clock is off, if it looks like it. */
  readonly clock?: string | undefined;
}

/** What the call was for: who is refused needs another token, another registration, or another certificate of an admin. */
export type CallPurpose = 'registration' | 'renewal' | 'admin';

const NEW_ADMIN = 'ask for another certificate, made at the server by `holdfast cert create NAME --role ROLE --out DIR`';

/** The failure of a call: whether token, account, the way or something else is to be mended. */
export function callError(failure: CallFailure, purpose: CallPurpose, server: string, cause: unknown): AgentError {
  const { code, problem, remedy } = meaning(failure, purpose, server);
  const sentence = failure.clock === undefined ? problem : `${problem}; ${failure.clock}`;
  const facts = remedy === undefined ? { problem: sentence } : { problem: sentence, remedy };
  return new AgentError(code, facts, { cause });
}

interface Meaning {
  readonly code: ErrorCode;
  readonly problem: string;
  readonly remedy?: string;
}

function meaning({ status, details, reach, clock }: CallFailure, purpose: CallPurpose, server: string): Meaning {
  const said = details === '' ? '' : `: ${details}`;
  switch (status) {
    case 'UNAUTHENTICATED':
    case 'PERMISSION_DENIED':
      return {
        code: purpose === 'registration' ? 'certificate.token_refused' : 'certificate.refused',
        problem: `${server} refused${said}`,
        ...(purpose === 'admin' ? { remedy: NEW_ADMIN } : {}),
      };
    case 'NOT_FOUND':
    case 'INVALID_ARGUMENT':
      return { code: 'certificate.unknown_account', problem: `${server} does not take it${said}` };
    case 'RESOURCE_EXHAUSTED':
      return { code: 'certificate.too_many', problem: `${server} has no room for it now${said}` };
    case 'UNAVAILABLE':
    case 'DEADLINE_EXCEEDED':
      return unreached(reach ?? { stage: 'through' }, purpose, server, `${waited(status)}${said}`, clock !== undefined);
    case 'UNIMPLEMENTED':
      return { code: 'link.refused', problem: `${server} is no control plane for this${said}` };
    case 'OTHER':
      return { code: 'link.refused', problem: `${server} failed${said}` };
  }
}

function unreached(reach: Reach, purpose: CallPurpose, server: string, said: string, clockIsOff: boolean): Meaning {
  const code = purpose === 'admin' ? 'admin.unreachable' : 'link.unreachable';
  switch (reach.stage) {
    case 'name':
      return {
        code,
        problem: `the name of ${server} is not known: ${reach.detail}`,
        remedy: 'check the spelling and the name service of this machine (/etc/resolv.conf); no packet was sent to the server',
      };
    case 'closed':
      return {
        code,
        problem: `nothing listens at ${server}: ${reach.detail}`,
        remedy:
          purpose === 'admin'
            ? 'check the port, and that the control plane runs with `server.listen.admin`; the machine itself answers'
            : 'check the port and that the control plane runs; the machine itself answers',
      };
    case 'silent':
      return {
        code,
        problem: `${server} does not answer: ${reach.detail}`,
        remedy: 'check the firewalls on the way: packets to this port are lost',
      };
    case 'tls':
      return {
        code: 'certificate.untrusted',
        problem: `the certificate of ${server} is not good: ${reach.detail}`,
        ...(clockIsOff ? { remedy: 'set the clock of this machine and try again' } : {}),
      };
    case 'refused':
      return purpose === 'admin'
        ? { code: 'certificate.refused', problem: `${server} refused this certificate: ${reach.detail}`, remedy: NEW_ADMIN }
        : { code: 'certificate.refused', problem: `${server} refused this node's certificate: ${reach.detail}` };
    case 'through':
      return {
        code,
        problem: `${server} ${said}`,
        ...(purpose === 'admin' ? { remedy: 'try again; else look into the log of the server' } : {}),
      };
  }
}

function waited(status: 'UNAVAILABLE' | 'DEADLINE_EXCEEDED'): string {
  return status === 'UNAVAILABLE' ? 'can be reached, but cannot serve this now' : 'can be reached, but did not answer in time';
}
