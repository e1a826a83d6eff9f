import { unbuilt } from './kind.js';

export const vipRelease = unbuilt({
  type: 'VIP_RELEASE',
  scheduling: { lanes: ['vip'], slot: 'urgent', deadlineMs: 2_500, repeat: 'never' },
});
