import { z } from 'zod';
import { readDocuments } from '../../kubernetes/documents.js';
import { manifest } from '../../kubernetes/schema.js';
import { built, LARGE_PAYLOAD_BYTES } from './kind.js';

const DEADLINE_MS = 120_000;
/** Of one that touches what others of its kind may touch. */
export const WIDE_DEADLINE_MS = 300_000;

export const applyCr = built({
  type: 'APPLY_CR',
  schema: z.object({ crB64: manifest }),
  scheduling: { lanes: ['cr/*'], slot: 'work', deadlineMs: WIDE_DEADLINE_MS, repeat: 'repeat' },
  maxPayloadBytes: LARGE_PAYLOAD_BYTES,
  work({ crB64: yaml }, { yaml: parse }) {
    const read = readDocuments(yaml, parse);
    if (typeof read === 'string') return { problem: `crB64: ${read}` };
    const timeoutMs = read.lanes.includes('cr/*') ? WIDE_DEADLINE_MS : DEADLINE_MS;
    return { plan: { do: 'kubernetes_apply', yaml, timeoutMs }, lanes: read.lanes, deadlineMs: timeoutMs };
  },
});
