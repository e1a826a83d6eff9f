import type { Removal } from '../uninstall/model.js';
import { OVERLAY_DEVICE, ROUTE_PROTOCOL } from './model.js';

/** Peers and routes go with their interface. */
export const overlayRemoval: Removal = {
  capability: 'overlay',
  steps: () => [
    {
      do: 'remove_overlay',
      what: `the interface ${OVERLAY_DEVICE} with this node's key, its routes (protocol ${ROUTE_PROTOCOL}) and rules of ufw`,
    },
  ],
};
