import { z } from 'zod';
import { judgeContents } from '../../dnsmasq/judge.js';
import { built, LARGE_PAYLOAD_BYTES } from './kind.js';

export const updateDnsmasq = built({
  type: 'UPDATE_DNSMASQ',
  schema: z.object({
    fileContents: z
      .string('text')
      .min(1, 'empty; a comment alone sets nothing on purpose')
      .superRefine((contents, context) => {
        for (const message of judgeContents(contents)) context.addIssue({ code: 'custom', message });
      }),
  }),
  maxPayloadBytes: LARGE_PAYLOAD_BYTES,
  scheduling: { lanes: ['dnsmasq'], slot: 'work', deadlineMs: 60_000, repeat: 'probe' },
  work: ({ fileContents }) => ({ plan: { do: 'update_dnsmasq', contents: fileContents } }),
});
