import { unbuilt } from './kind.js';

export const reinstallNode = unbuilt({
  type: 'REINSTALL_NODE',
  scheduling: { lanes: ['*'], slot: 'urgent', deadlineMs: undefined, repeat: 'never' },
});
