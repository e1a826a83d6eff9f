import { z } from 'zod';
import { minorOf, unstartedAnswer } from '../../kubernetes/upgrade.js';
import { built } from './kind.js';

/** These become parts of names of packages and of URLs: digits and dots, nothing else, a leading `v` aside. */
const version = (expected: string) =>
  z
    .string('text')
    .regex(/^v?\d{1,3}\.\d{1,3}\.\d{1,3}$/, expected)
    .transform((text) => text.replace(/^v/, ''));
const mayBeEmpty = <Schema extends z.ZodType<string>>(schema: Schema) => schema.or(z.literal('')).nullish();

export const upgradeNodeK8s = built({
  type: 'UPGRADE_NODE_K8S',
  schema: z
    .object({
      targetKubernetesVersion: version('a version such as 1.33.4'),
      targetContainerdVersion: mayBeEmpty(version('a version such as 1.7.27')),
      targetHelmVersion: mayBeEmpty(version('a version such as 3.18.3')),
      kubeRepoVersion: mayBeEmpty(
        z
          .string('text')
          .regex(/^v?\d{1,3}\.\d{1,3}$/, 'a version such as v1.33')
          .transform((text) => text.replace(/^v/, '')),
      ),
      isFirstCp: z.boolean('true or false').nullish(),
    })
    .refine(
      ({ kubeRepoVersion: repo, targetKubernetesVersion: target }) => !repo || repo === minorOf(target),
      'kubeRepoVersion: the repository of another minor version does not have targetKubernetesVersion',
    ),
  scheduling: { lanes: ['k8s-packages', 'kubeadm', 'etcd', 'kubectl'], slot: 'work', deadlineMs: 3_600_000, repeat: 'probe' },
  failure: unstartedAnswer,
  work: ({ targetKubernetesVersion, targetContainerdVersion, targetHelmVersion, isFirstCp }) => ({
    plan: {
      ...{ do: 'upgrade_node', kubernetes: targetKubernetesVersion, isFirstControlPlane: isFirstCp ?? false },
      ...{ containerd: targetContainerdVersion ?? '', helm: targetHelmVersion ?? '' },
    },
  }),
});
