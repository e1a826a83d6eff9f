import { listenerId } from '../../domain/dataplane/compile.js';
import { explainPort, type LiveEndpoint } from '../../domain/dataplane/explain.js';
import type { ListenerId } from '../../domain/dataplane/model.js';
import type { NodeName } from '../../domain/identity/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { formatAddressPort, type IpAddress, ipAddress } from '../../domain/kernel/network.js';
import { formatRef, qualifiedName, type ServicePort, type ServiceResource } from '../../domain/resource/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { DataPlane } from '../../ports/dataplane/data-plane.js';
import type { ListenerStatus } from '../../ports/dataplane/listener-status.js';
import type { ExplainCall, Explainer, Explanation, PortExplanation } from '../../ports/driving/explainer.js';
import type { OrderedLog } from '../../ports/log/ordered-log.js';
import type { StateView } from '../../ports/log/state-view.js';

export interface ExplainServiceParts {
  readonly nodeId: NodeName;
  readonly log: Pick<OrderedLog, 'head'>;
  readonly view: StateView;
  readonly listeners: ListenerStatus;
  readonly dataPlane: Pick<DataPlane, 'statsOf'>;
  /** The kernel of this node carries services. */
  readonly kernel: boolean;
}

/** Explains a service from the state that the data plane is compiled from, and from what the data plane says of itself. */
export class ExplainService implements Explainer {
  readonly #parts: ExplainServiceParts;

  constructor(parts: ExplainServiceParts) {
    this.#parts = parts;
  }

  async explain({ namespace, service: name, port, from }: ExplainCall, options: CallOptions): Promise<Explanation> {
    const { log, view, nodeId } = this.#parts;
    const client = from === undefined ? undefined : ipAddress(from);
    if (from !== undefined && client === undefined) {
      throw new AgentError('resource.invalid', { problem: `expected an IP address to look from, found ${JSON.stringify(from)}` });
    }
    await view.reached((await log.head(options)).revision, options);
    const service = view.state.service(qualifiedName(namespace, name))?.resource;
    const ref = formatRef({ kind: 'Service', namespace, name });
    if (service === undefined) throw new AgentError('resource.not_found', { problem: ref });
    const { ports } = service.spec;
    const wanted = port === undefined ? ports : ports.filter((each) => each.name === port || String(each.port) === port);
    if (wanted.length === 0) {
      const known = ports.map((each) => `${each.name} (${each.port})`).join(', ');
      throw new AgentError('resource.not_found', { problem: `${ref} has no port ${port}; its ports are ${known}` });
    }
    return { nodeId, revision: view.state.revision, ports: wanted.map((each) => this.#port(service, each, client)) };
  }

  #port(service: ServiceResource, port: ServicePort, client: IpAddress | undefined): PortExplanation {
    const { kernel, view, listeners, nodeId } = this.#parts;
    const name = qualifiedName(service.metadata.namespace, service.metadata.name);
    const id = listenerId(name, port.name);
    const listener = listeners.stateOf(id);
    const vip = view.state.vips.ofService(name);
    const listen = listener.state === 'listening' && vip !== undefined ? formatAddressPort(vip, listener.port) : '';
    const node = { nodeId, live: this.#live(id), fresh: view.fresh(), kernel };
    return { ...explainPort(view.state, service, port, node, client), listener, listen };
  }

  #live(id: ListenerId): ReadonlyMap<string, LiveEndpoint> {
    const endpoints = this.#parts.dataPlane.statsOf(id)?.endpoints ?? [];
    return new Map(endpoints.map(({ address, port, ...live }) => [formatAddressPort(address, port), live]));
  }
}
