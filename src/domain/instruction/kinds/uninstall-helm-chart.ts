import { unbuilt } from './kind.js';

export const uninstallHelmChart = unbuilt({
  type: 'UNINSTALL_HELM_CHART',
  scheduling: { lanes: ['helm/*'], slot: 'work', deadlineMs: 900_000, repeat: 'repeat' },
});
