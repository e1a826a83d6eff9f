import { ASSIGN_MS, ASSIGN_REPLY_MS } from '../../vip/model.js';
import { vipPayload } from '../../vip/schema.js';
import { built } from './kind.js';

export const vipAssign = built({
  type: 'VIP_ASSIGN',
  schema: vipPayload,
  scheduling: { lanes: ['vip'], slot: 'urgent', deadlineMs: ASSIGN_MS, repeat: 'never' },
  // The server asks the next candidate after 5 s of silence.
  failure: () => ({ kind: 'none' }),
  replyWithinMs: ASSIGN_REPLY_MS,
  work: ({ generation }) => ({ plan: { do: 'assign_vip', generation } }),
});
