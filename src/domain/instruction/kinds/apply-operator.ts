import { z } from 'zod';
import { readDocuments } from '../../kubernetes/documents.js';
import { manifest } from '../../kubernetes/schema.js';
import { WIDE_DEADLINE_MS } from './apply-cr.js';
import { built, LARGE_PAYLOAD_BYTES } from './kind.js';

export const applyOperator = built({
  type: 'APPLY_OPERATOR',
  schema: z.object({ crdB64: manifest }),
  scheduling: { lanes: ['cr/*'], slot: 'work', deadlineMs: WIDE_DEADLINE_MS, repeat: 'repeat' },
  maxPayloadBytes: LARGE_PAYLOAD_BYTES,
  work({ crdB64: yaml }, { yaml: parse }) {
    const read = readDocuments(yaml, parse);
    if (typeof read === 'string') return { problem: `crdB64: ${read}` };
    return { plan: { do: 'kubernetes_apply', yaml, timeoutMs: WIDE_DEADLINE_MS } };
  },
});
