import { LARGE_PAYLOAD_BYTES, unbuilt } from './kind.js';

export const applyOperator = unbuilt({
  type: 'APPLY_OPERATOR',
  scheduling: { lanes: ['cr/*'], slot: 'work', deadlineMs: 300_000, repeat: 'repeat' },
  maxPayloadBytes: LARGE_PAYLOAD_BYTES,
});
