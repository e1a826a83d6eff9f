import { type AbsolutePath, under } from '../kernel/paths.js';
import type { Argv, Removal } from '../uninstall/model.js';

const FILE = '/etc/haproxy/haproxy.cfg' as AbsolutePath;
const TIMEOUT_MS = 30_000;

/** HAProxy itself stays; without a configuration it serves nothing. One that somebody else has written is not ours to take. */
export const loadbalancerRemoval: Removal = {
  capability: 'loadbalancer',
  steps: ({ root }) => {
    const file = under(root, FILE);
    const onlyIf: Argv = ['grep', '-q', '^ *description holdfast ', file];
    const what = `the configuration of HAProxy that the agent has written, ${file}`;
    return [
      {
        do: 'run',
        argv: ['systemctl', 'stop', '--', 'haproxy.service'],
        onlyIf,
        timeoutMs: TIMEOUT_MS,
        what: 'the API load balancer',
      },
      { do: 'run', argv: ['rm', '-f', '--', file], onlyIf, timeoutMs: TIMEOUT_MS, what },
    ];
  },
};
