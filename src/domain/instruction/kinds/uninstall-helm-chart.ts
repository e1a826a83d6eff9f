import { z } from 'zod';
import { helmName, repositoryName } from '../../kubernetes/schema.js';
import { built } from './kind.js';

const DEADLINE_MS = 15 * 60_000;

export const uninstallHelmChart = built({
  type: 'UNINSTALL_HELM_CHART',
  schema: z.object({
    myRepoName: repositoryName,
    myChartName: helmName,
    namespace: helmName,
  }),
  scheduling: { lanes: ['helm/*'], slot: 'work', deadlineMs: DEADLINE_MS, repeat: 'repeat' },
  work: ({ myChartName: release, namespace }) => ({
    plan: { do: 'helm_uninstall', release, namespace, timeoutMs: DEADLINE_MS },
    lanes: [`helm/${namespace}/${release}`],
  }),
});
