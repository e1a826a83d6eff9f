import { unbuilt } from './kind.js';

export const installHelmChart = unbuilt({
  type: 'INSTALL_HELM_CHART',
  scheduling: { lanes: ['helm/*'], slot: 'work', deadlineMs: 900_000, repeat: 'probe' },
});
