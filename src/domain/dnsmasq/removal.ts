import type { Removal } from '../uninstall/model.js';

export const dnsmasqRemoval: Removal = {
  capability: 'dnsmasq',
  steps: () => [{ do: 'remove_dnsmasq', what: 'the configuration of dnsmasq that a control plane has sent' }],
};
