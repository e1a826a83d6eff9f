import { LARGE_PAYLOAD_BYTES, unbuilt } from './kind.js';

export const setVpnPeers = unbuilt({
  type: 'SET_VPN_PEERS',
  scheduling: { lanes: ['overlay'], slot: 'urgent', deadlineMs: 60_000, repeat: 'repeat' },
  maxPayloadBytes: LARGE_PAYLOAD_BYTES,
});
