import { z } from 'zod';
import { helmName, repositoryName } from '../../kubernetes/schema.js';
import { built } from './kind.js';

const DEADLINE_MS = 15 * 60_000;
const url = (schemes: string, expected: string) =>
  z
    .string('text')
    .max(2_048, 'at most 2048 characters')
    .regex(new RegExp(`^(?:${schemes})://[^\\s\\0-\\x1f]+$`), expected);

export const installHelmChart = built({
  type: 'INSTALL_HELM_CHART',
  schema: z.object({
    repoUrl: url('https|oci', 'a URL with https or oci'),
    myRepoName: repositoryName,
    myChartName: helmName,
    chartName: helmName,
    namespace: helmName,
    valuesUrl: url('https', 'a URL with https').or(z.literal('')).nullish(),
    version: z
      .string('text')
      .regex(/^[0-9A-Za-z.+~^<>=|, *-]{0,64}$/, 'a version')
      .refine((text) => !text.startsWith('-'), 'a version')
      .nullish(),
  }),
  scheduling: { lanes: ['helm/*'], slot: 'work', deadlineMs: DEADLINE_MS, repeat: 'probe' },
  work: ({ repoUrl, myChartName: release, chartName: chart, namespace, valuesUrl, version }) => ({
    plan: {
      ...{ do: 'helm_install', release, namespace, repoUrl, chart, timeoutMs: DEADLINE_MS },
      ...{ version: version ?? '', valuesUrl: valuesUrl ?? '' },
    },
    lanes: [`helm/${namespace}/${release}`],
  }),
});
