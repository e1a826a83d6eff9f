import { LARGE_PAYLOAD_BYTES, unbuilt } from './kind.js';

export const updateDnsmasq = unbuilt({
  type: 'UPDATE_DNSMASQ',
  scheduling: { lanes: ['dnsmasq'], slot: 'work', deadlineMs: 60_000, repeat: 'probe' },
  maxPayloadBytes: LARGE_PAYLOAD_BYTES,
});
