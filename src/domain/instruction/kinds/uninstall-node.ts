import { unbuilt } from './kind.js';

export const uninstallNode = unbuilt({
  type: 'UNINSTALL_NODE',
  scheduling: { lanes: ['*'], slot: 'urgent', deadlineMs: undefined, repeat: 'never' },
  mayBeEmpty: true,
});
