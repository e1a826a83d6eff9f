import { aid, nid, registrationId } from '../../src/domain/link/model.js';
import type { PeerNode } from '../../src/ports/driving/node-streams.js';

/** A node that may call. */
export function peer(name: string): PeerNode {
  const identity = { role: 'node' as const, aid: aid('account'), nid: nid(name), registration: registrationId('r1') };
  return { identity, serial: '1', notAfter: Number.MAX_SAFE_INTEGER, address: '127.0.0.1:1' };
}
