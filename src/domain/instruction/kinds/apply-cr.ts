import { LARGE_PAYLOAD_BYTES, unbuilt } from './kind.js';

export const applyCr = unbuilt({
  type: 'APPLY_CR',
  scheduling: { lanes: ['cr/*'], slot: 'work', deadlineMs: 300_000, repeat: 'repeat' },
  maxPayloadBytes: LARGE_PAYLOAD_BYTES,
});
