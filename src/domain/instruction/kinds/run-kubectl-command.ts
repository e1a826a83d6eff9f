import { unbuilt } from './kind.js';

export const runKubectlCommand = unbuilt({
  type: 'RUN_KUBECTL_COMMAND',
  scheduling: { lanes: ['kubectl'], slot: 'work', deadlineMs: 900_000, repeat: 'never' },
});
