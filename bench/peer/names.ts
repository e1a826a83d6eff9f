import { readFile } from 'node:fs/promises';
import { loadAddon } from '../../dist/adapters/dataplane/addon.js';
import { NativeDnsResponder } from '../../dist/adapters/dns/native-dns-responder.js';
import { compileApexes, compileServices } from '../../dist/domain/dns/compile.js';
import { servicesOf, Zone } from '../../dist/domain/dns/zone.js';
import { addressPort } from '../../dist/domain/kernel/network.js';
import { logKey } from '../../dist/domain/log/model.js';
import { ClusterState } from '../../dist/domain/resource/state.js';

export interface NamesOrder {
  /** `address:port` */
  readonly listen: string;
  /** Lines `SERVICE.NAMESPACE.ZONE address`, all of one zone. */
  readonly zone: string;
  readonly threads: number;
}

const BATCH = 256;

/**
 * The zone of those services by the product's own table and threads. Their addresses are no listeners here: the rig gives 10,000 names addresses
 * that nobody has.
 * @throws Error for a line that is none, and when it cannot listen
 */
export async function startNames({ listen, zone, threads }: NamesOrder, signal: AbortSignal): Promise<AsyncDisposable> {
  const { state, origin } = stateOf(await readFile(zone, 'utf8'));
  const names = new Zone({ origin, state });
  const services = servicesOf(state);
  names.update(services);
  const responder = new NativeDnsResponder(loadAddon, threads);
  responder.start();
  await responder.apply(compileApexes(names), { signal });
  for (let from = 0; from < services.length; from += BATCH) {
    await responder.apply(compileServices(names, services.slice(from, from + BATCH)), { signal });
  }
  const at = addressPort(listen);
  const [result] = at === undefined ? [] : responder.listen([at]);
  if (result?.listening !== true) throw new Error(`cannot listen on ${listen}: ${result?.detail ?? 'no address'}`);
  return { [Symbol.asyncDispose]: () => responder.stop() };
}

function stateOf(text: string): { readonly state: ClusterState; readonly origin: readonly string[] } {
  const state = new ClusterState();
  let origin: readonly string[] = [];
  const items = text
    .trim()
    .split('\n')
    .flatMap((line) => {
      const [name = '', address] = line.split(' ');
      const [service, namespace, ...rest] = name.split('.');
      if (service === undefined || namespace === undefined || rest.length === 0 || address === undefined)
        throw new Error(`RIG_ZONE: "${line}" is no line "SERVICE.NAMESPACE.ZONE address"`);
      origin = rest;
      const metadata = { name: service, namespace };
      const resource = { apiVersion: 'holdfast/v1', kind: 'Service', metadata, spec: { ports: [], endpoints: [] } };
      return [
        { key: logKey(`service/${namespace}/${service}`), value: JSON.stringify(resource), revision: state.revision },
        {
          key: logKey(`vip/${address}`),
          value: JSON.stringify({ service: `${namespace}/${service}` }),
          revision: state.revision,
        },
      ];
    });
  const cursor = { logId: 'rig', revision: state.revision, digest: '' };
  state.replace({ cursor: cursor as never, time: 0, items });
  return { state, origin };
}
