import { z } from 'zod';
import { crLane } from '../../kubernetes/documents.js';
import { PLURAL, SUBDOMAIN } from '../../kubernetes/names.js';
import { built } from './kind.js';

const DEADLINE_MS = 120_000;

export const deleteCr = built({
  type: 'DELETE_CR',
  schema: z.object({
    type: z.string('text').regex(PLURAL, 'the plural of a resource, such as volumes'),
    id: z.string('text').regex(SUBDOMAIN, 'a name of Kubernetes'),
  }),
  scheduling: { lanes: ['cr/*'], slot: 'work', deadlineMs: DEADLINE_MS, repeat: 'repeat' },
  work: ({ type: resource, id }) => ({
    plan: { do: 'kubernetes_delete', resource, id, timeoutMs: DEADLINE_MS },
    lanes: [crLane(id, id)],
  }),
});
