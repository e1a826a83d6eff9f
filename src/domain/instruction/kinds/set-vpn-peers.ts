import { peersPayload, wantedSet } from '../../overlay/schema.js';
import { built, LARGE_PAYLOAD_BYTES } from './kind.js';

export const setVpnPeers = built({
  type: 'SET_VPN_PEERS',
  schema: peersPayload,
  scheduling: { lanes: ['overlay'], slot: 'urgent', deadlineMs: 60_000, repeat: 'repeat', newestOnly: true },
  maxPayloadBytes: LARGE_PAYLOAD_BYTES,
  work: ({ peers, address }) => ({ plan: { do: 'set_overlay', wanted: wantedSet(peers, address ?? undefined) } }),
});
