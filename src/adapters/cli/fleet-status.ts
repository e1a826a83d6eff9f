import type { FleetStatus, StoreStatus } from '../generated/holdfast/admin/v1/admin.js';
import { age, table } from './output.js';

/** What a control plane is, beside what every daemon is. */
export function fleetRows(fleet: FleetStatus): readonly (readonly string[])[] {
  const { server, nodes, online, offline, unknown, unanswered, links, followers, replicas } = fleet;
  const unclear = unknown === 0 ? '' : `, ${unknown} unknown`;
  const others = replicas.filter(({ id }) => id !== server).map(({ id, silentMs }) => `${id} ${age(Number(silentMs))} ago`);
  return [
    ['replica', server],
    ['others', others.join(', ') || 'none'],
    ['fleet', `${nodes} nodes: ${online} online, ${offline} offline${unclear}; ${unanswered} unanswered instructions`],
    ['links', `${links} nodes, ${followers} of them follow the log here`],
    ...fleet.stores.map((store) => [`${store.name} store`, storeWords(store)]),
  ];
}

function storeWords({ backend, failingSinceMs, answeredInMs }: StoreStatus): string {
  if (failingSinceMs !== 0n) return `${backend}, does not answer for ${age(Date.now() - Number(failingSinceMs))}`;
  return answeredInMs === undefined ? `${backend}, not asked yet` : `${backend}, answered in ${answeredInMs.toFixed(1)} ms`;
}

export function certificateTable({ certificates }: FleetStatus): string {
  const rows = certificates.map(({ name, expiresAtMs }) => {
    const left = Number(expiresAtMs) - Date.now();
    const date = new Date(Number(expiresAtMs)).toISOString().slice(0, 10);
    return [name, date, left > 0 ? `in ${age(left)}` : `${age(-left)} ago`];
  });
  return table(['CERTIFICATE', 'ENDS', ''], rows);
}
