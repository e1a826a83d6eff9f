import { ipAddress } from '../kernel/network.js';
import type { ApiServer, RunningBalancer, RunningServer, RuntimeStep } from './model.js';

/** What still talks to a server that left the list: as long as a worker that was replaced may live. */
export const DRAIN_SECONDS = 3_600;

/** How the running HAProxy gets to what its file says. */
export type ServingPlan =
  | { readonly do: 'start' }
  /** What the runtime API cannot change. */
  | { readonly do: 'reload'; readonly because: string }
  /** None: it is there, but for servers that still drain. */
  | { readonly do: 'change'; readonly steps: readonly RuntimeStep[] };

export interface WantedServing {
  readonly servers: readonly ApiServer[];
  readonly description: string;
}

/**
 * From the whole wanted and the whole observed state: planning again after its steps plans nothing but the removal of what has drained.
 * @param running undefined when it does not answer
 */
export function planServing(wanted: WantedServing, isActive: boolean, running: RunningBalancer | undefined): ServingPlan {
  if (!isActive) return { do: 'start' };
  if (running === undefined) return { do: 'reload', because: 'its runtime API does not answer' };
  if (running.description !== wanted.description) return { do: 'reload', because: 'it runs another configuration' };
  const byName = new Map(running.servers.map((server) => [server.name, server]));
  const steps: RuntimeStep[] = [];
  for (const { name, endpoint } of wanted.servers) {
    const server = byName.get(name);
    const address = ipAddress(endpoint.host);
    if (server === undefined) {
      if (address === undefined) return { do: 'reload', because: `${endpoint.host} is a name` };
      steps.push({ do: 'add', name, address, port: endpoint.port }, { do: 'ready', name });
    } else if (!isAt(server, endpoint.host, endpoint.port)) return { do: 'reload', because: `${name} is somewhere else` };
    else if (server.admin !== 'ready' || !server.isChecked) steps.push({ do: 'ready', name });
  }
  const names = new Set<string>(wanted.servers.map(({ name }) => name));
  return { do: 'change', steps: [...steps, ...running.servers.filter(({ name }) => !names.has(name)).flatMap(farewell)] };
}

function isAt({ address, host, port }: RunningServer, wantedHost: string, wantedPort: number): boolean {
  return port === wantedPort && (host === '' ? address === wantedHost : host === wantedHost);
}

/** What goes on with a server that left the list. Streams end by themselves, or with the server, or after an hour. */
function farewell({ name, admin, sessions, changedSeconds }: RunningServer): readonly RuntimeStep[] {
  if (admin === 'ready') return [{ do: 'drain', name }];
  const isOver = sessions === 0 || (admin === 'drain' && changedSeconds >= DRAIN_SECONDS);
  return isOver ? [{ do: 'remove', name }] : [];
}
