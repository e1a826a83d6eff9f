import { RELEASE_REPLY_MS } from '../../vip/model.js';
import { vipPayload } from '../../vip/schema.js';
import { built } from './kind.js';

export const vipRelease = built({
  type: 'VIP_RELEASE',
  schema: vipPayload,
  scheduling: { lanes: ['vip'], slot: 'urgent', deadlineMs: 2_500, repeat: 'never' },
  replyWithinMs: RELEASE_REPLY_MS,
  evenUnjournalled: true,
  work: ({ generation }) => ({ plan: { do: 'release_vip', generation } }),
});
