import { unbuilt } from './kind.js';

export const vipAssign = unbuilt({
  type: 'VIP_ASSIGN',
  scheduling: { lanes: ['vip'], slot: 'urgent', deadlineMs: 4_000, repeat: 'never' },
  // The server asks the next candidate after 5 s of silence.
  failure: () => ({ kind: 'none' }),
});
