import { base64Url, hex } from '../kernel/base64-url.js';
import type { Aid, Nid, RegistrationId } from '../link/model.js';

/** A token admits one machine as a new node, or gives it the place of a node that is there. */
export type TokenPurpose = { readonly kind: 'join' } | { readonly kind: 'replace'; readonly nid: Nid };

/** What a token was used for. */
export interface TokenUse {
  /** Wall clock, milliseconds. */
  readonly at: number;
  readonly machineId: string;
  readonly nid: Nid;
  readonly registration: RegistrationId;
  /** Of the certificate. */
  readonly serial: string;
  /** SHA-256 in hex of its public key. */
  readonly fingerprint: string;
}

/** A token as it is kept: without its secret. */
export interface TokenRecord {
  readonly id: string;
  /** SHA-256 in hex of the secret as it stands in the token. Its 256 bits are random: no salt, and no slow hash, would add to that. */
  readonly digest: string;
  readonly aid: Aid;
  readonly purpose: TokenPurpose;
  /** Wall clock, milliseconds. */
  readonly created: number;
  readonly expires: number;
  readonly used?: TokenUse | undefined;
}

const ID_BYTES = 6;
const SECRET_BYTES = 32;
/** Random bytes that a token is made of. */
export const TOKEN_BYTES = ID_BYTES + SECRET_BYTES;

export interface TokenParts {
  readonly id: string;
  readonly secret: string;
}

/** @throws RangeError when there are not `TOKEN_BYTES` */
export function tokenOf(randomBytes: Uint8Array): TokenParts {
  if (randomBytes.length !== TOKEN_BYTES) throw new RangeError(`${TOKEN_BYTES} bytes are needed, got ${randomBytes.length}`);
  return { id: hex(randomBytes.subarray(0, ID_BYTES)), secret: base64Url(randomBytes.subarray(ID_BYTES)) };
}

/** `<id>.<secret>`: 12 hex digits, a dot, 43 characters. */
export function formatToken({ id, secret }: TokenParts): string {
  return `${id}.${secret}`;
}

export function parseToken(text: string): TokenParts | undefined {
  const match = /^([0-9a-f]{12})\.([A-Za-z0-9_-]{43})$/.exec(text.trim());
  const [, id, secret] = match ?? [];
  return id === undefined || secret === undefined ? undefined : { id, secret };
}

/** The answer may have been lost: for so long the same machine may ask with the same token again. */
const REPEAT_MS = 10 * 60_000;

/** A try with a token whose secret was right. */
export interface TokenTry {
  readonly aid: string;
  readonly machineId: string;
  /** Of the key that the machine made; undefined when it wants one made. */
  readonly fingerprint: string | undefined;
}

export type TokenVerdict =
  | { readonly verdict: 'fresh' }
  /** It was used by this machine with this key a moment ago: the same answer. */
  | { readonly verdict: 'again'; readonly use: TokenUse }
  /** It was used by this machine a moment ago, for a key that nobody kept: a new pair, if the former was never used. */
  | { readonly verdict: 'reissue'; readonly use: TokenUse }
  | { readonly verdict: 'wrong_account' }
  /** `reason` is for the server's log: whoever tries is told one text. `foreign`: another machine tries a token that was used. */
  | { readonly verdict: 'refused'; readonly reason: string; readonly foreign: boolean };

/** @param now wall clock, milliseconds */
export function judgeToken(record: TokenRecord, { aid, machineId, fingerprint }: TokenTry, now: number): TokenVerdict {
  const refuse = (reason: string, foreign = false): TokenVerdict => ({ verdict: 'refused', reason, foreign });
  const { used } = record;
  if (used === undefined && now >= record.expires) return refuse('it has expired');
  if (record.aid !== aid) return { verdict: 'wrong_account' };
  if (used === undefined) return { verdict: 'fresh' };
  if (used.machineId !== machineId) return refuse(`it was used by another machine, as ${used.nid}`, true);
  // A clock that was set back makes the use lie ahead: then nothing tells how long ago it was.
  if (now < used.at || now >= used.at + REPEAT_MS) return refuse(`this machine has used it, as ${used.nid}, too long ago`);
  if (fingerprint === undefined) return { verdict: 'reissue', use: used };
  return fingerprint === used.fingerprint
    ? { verdict: 'again', use: used }
    : refuse(`this machine has used it, as ${used.nid}, with another key`);
}

export const DEFAULT_TOKEN_TTL_MS = 60 * 60_000;
/** A week: a token that lies about for longer is a standing invitation. */
export const MAX_TOKEN_TTL_MS = 7 * 24 * 60 * 60_000;
/** Tokens that were used or have expired are shown for so long. */
export const TOKEN_KEPT_MS = 7 * 24 * 60 * 60_000;

export type TokenState = 'open' | 'used' | 'expired';

/** @param now wall clock, milliseconds */
export function tokenState({ used, expires }: TokenRecord, now: number): TokenState {
  if (used !== undefined) return 'used';
  return now >= expires ? 'expired' : 'open';
}
