import type { Removal } from '../uninstall/model.js';

/** Our mark on local routes, native/core/local_routes.h. */
const LOCAL_ROUTES = '202';

export const dataplaneRemoval: Removal = {
  capability: 'dataplane',
  steps: () => [
    { do: 'remove_rules', what: 'the table inet holdfast of nf_tables' },
    { do: 'restore_sysctls', what: 'sysctls that were set, to what they were before' },
    {
      do: 'run',
      argv: ['ip', '-4', 'route', 'flush', 'table', 'local', 'proto', LOCAL_ROUTES],
      timeoutMs: 10_000,
      what: `the local routes of virtual IPs (protocol ${LOCAL_ROUTES})`,
    },
  ],
};
