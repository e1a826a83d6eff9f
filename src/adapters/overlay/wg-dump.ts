import { addressPort } from '../../domain/kernel/network.js';
import { networkOf, type ObservedPeer, publicKey } from '../../domain/overlay/model.js';

export interface WgDump {
  /** A secret; undefined when the interface has no key. */
  readonly privateKey: string | undefined;
  /** Empty when the interface has no key. */
  readonly publicKey: string;
  readonly port: number;
  readonly peers: readonly ObservedPeer[];
}

/**
 * `wg show wg0 dump`: a line of the interface (private key, public key, port, mark), then one a peer (public key, preshared key, endpoint,
 * allowed IPs, latest handshake in seconds, bytes received and sent, keepalive), separated by tabs. Undefined when it is anything else: a
 * part of it would remove peers. IPv6 ranges are none of ours and are left out.
 */
export function parseWgDump(text: string): WgDump | undefined {
  const [first, ...rest] = text.split('\n').filter((line) => line !== '');
  const [privateKey, own, port] = first?.split('\t') ?? [];
  if (privateKey === undefined || own === undefined || port === undefined || !/^\d+$/.test(port)) return undefined;
  const peers = rest.map(parsePeer);
  const known = peers.flatMap((peer) => (peer === undefined ? [] : [peer]));
  if (known.length !== peers.length) return undefined;
  const none = privateKey === '(none)';
  return { privateKey: none ? undefined : privateKey, publicKey: none ? '' : own, port: Number(port), peers: known };
}

function parsePeer(line: string): ObservedPeer | undefined {
  const [key = '', , endpoint = '', allowed = '', handshake = '', received = '', sent = '', keepalive = ''] = line.split('\t');
  const read = publicKey(key);
  const numbers = [handshake, received, sent].every((one) => /^\d+$/.test(one));
  if (read === undefined || !numbers || !/^(\d+|off)$/.test(keepalive)) return undefined;
  const at = endpoint === '(none)' ? undefined : addressPort(endpoint);
  if (endpoint !== '(none)' && at === undefined) return undefined;
  const ranges = (allowed === '(none)' ? [] : allowed.split(',')).filter((range) => !range.includes(':')).map(networkOf);
  if (ranges.includes(undefined)) return undefined;
  return {
    publicKey: read,
    endpoint: at,
    ranges: ranges.flatMap((range) => range ?? []),
    handshakeAt: Number(handshake) * 1_000,
    received: Number(received),
    sent: Number(sent),
    keepaliveS: keepalive === 'off' ? 0 : Number(keepalive),
  };
}
