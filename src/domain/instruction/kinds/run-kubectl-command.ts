import { z } from 'zod';
import { classifyKubectl } from '../../kubernetes/kubectl.js';
import { built } from './kind.js';

const READING_MS = 120_000;
const WRITING_MS = 15 * 60_000;
const MOST_ARGUMENTS = 512;

export const runKubectlCommand = built({
  type: 'RUN_KUBECTL_COMMAND',
  schema: z
    .array(z.string('text').regex(/^[^\0]*$/, 'text without NUL'), 'a list of arguments')
    .min(1, 'at least one argument')
    .max(MOST_ARGUMENTS, `at most ${MOST_ARGUMENTS} arguments`),
  scheduling: { lanes: ['kubectl'], slot: 'work', deadlineMs: WRITING_MS, repeat: 'never' },
  work(argv) {
    const read = classifyKubectl(argv);
    if ('refused' in read) return { problem: read.refused };
    const { verb, repeat } = read;
    const subject = { kind: 'kubectl', name: verb } as const;
    switch (repeat) {
      case 'read':
        return {
          ...{ plan: { do: 'kubectl', argv, verb, timeoutMs: READING_MS }, subject, repeat, lanes: [] },
          ...{ slot: 'read', deadlineMs: READING_MS },
        };
      case 'repeat':
        return { plan: { do: 'kubectl', argv, verb, timeoutMs: WRITING_MS }, subject, repeat };
      case 'never':
        return { plan: { do: 'kubectl_once', argv, timeoutMs: WRITING_MS }, subject };
    }
  },
});
