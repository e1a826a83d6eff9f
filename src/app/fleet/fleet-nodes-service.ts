import { instructionKey, type KeptRow } from '../../domain/dispatch/model.js';
import { settled } from '../../domain/dispatch/plan.js';
import type { NodeName } from '../../domain/identity/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Nid } from '../../domain/link/model.js';
import { presenceKey } from '../../domain/link/presence.js';
import { streamPrefix } from '../../domain/link/stream-record.js';
import { nodeInfoKey } from '../../domain/node/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { FleetNode, FleetNodes } from '../../ports/driving/fleet.js';
import type { RegisteredNode, Registrations } from '../../ports/driving/registrations.js';
import type { OrderedLog } from '../../ports/log/ordered-log.js';
import type { StateView } from '../../ports/log/state-view.js';
import type { ControlStore, Write } from '../../ports/store/control-store.js';
import { unknownNode } from '../dispatch/dispatch-service.js';
import type { InstructionBook } from '../dispatch/instruction-book.js';
import { writesOf } from '../dispatch/node-deliveries.js';
import type { NodeSessions } from '../link/node-sessions.js';
import type { PresenceBoard } from '../link/presence-board.js';
import type { BoundNodeNames } from '../log/bound-node-names.js';
import type { FleetOverlay } from '../overlay/fleet-overlay.js';
import type { Cordons } from './cordons.js';

export interface FleetNodesParts {
  readonly store: ControlStore;
  readonly registrations: Registrations;
  readonly presence: PresenceBoard;
  readonly sessions: Pick<NodeSessions, 'get'>;
  readonly cordons: Cordons;
  readonly book: InstructionBook;
  readonly overlay: Pick<FleetOverlay, 'forget'>;
  readonly clock: Clock;
  /** Where nodes say what they are. */
  readonly log: Pick<OrderedLog, 'propose'>;
  readonly view: Pick<StateView, 'state'>;
  readonly names: Pick<BoundNodeNames, 'all'>;
}

/** The nodes of the fleet: who has registered, who is there, who is held back. */
export class FleetNodesService implements FleetNodes {
  readonly #parts: FleetNodesParts;

  constructor(parts: FleetNodesParts) {
    this.#parts = parts;
  }

  async list(options: CallOptions): Promise<readonly FleetNode[]> {
    const { registrations, book, cordons, names } = this.#parts;
    await Promise.all([book.reached(0n, options), cordons.current(options)]);
    const bound = await names.all(options);
    return (await registrations.list(options)).map((node) => this.#describe(node, bound.get(node.nid)));
  }

  async cordon(nid: Nid, cordoned: boolean, options: CallOptions): Promise<void> {
    const { registrations, cordons } = this.#parts;
    await cordons.current(options);
    if ((await registrations.get(nid, options)) === undefined) throw unknownNode(nid);
    await cordons.set(nid, cordoned, options);
  }

  /** Revoked first: what follows cannot be undone by a node that comes back meanwhile. */
  async remove(nid: Nid, options: CallOptions): Promise<void> {
    const { registrations, sessions, cordons, presence, store, book, overlay, log, names } = this.#parts;
    const removed = await registrations.remove(nid, options);
    sessions.get(nid)?.end({ status: 'revoked', message: 'the node was removed' });
    await book.reached(0n, options);
    for (const kept of book.open(nid)) await this.#settle(kept, options);
    await cordons.set(nid, false, options);
    await overlay.forget(nid, options);
    const name = (await names.all(options)).get(nid);
    if (name !== undefined) await log.propose({ changes: [{ key: nodeInfoKey(name), value: null }], preconditions: [] }, options);
    const streams = await store.list(`${streamPrefix}${nid}/`, options);
    const writes: Write[] = [...streams.map(({ key }) => key), presenceKey(nid)].map((key) => ({ key, value: null }));
    await store.commit([], writes, options);
    const wasThere = presence.get(nid) !== undefined || streams.length > 0;
    presence.forget(nid);
    if (!removed && !wasThere) throw unknownNode(nid);
  }

  async revokeCertificate(serial: string, reason: string, options: CallOptions): Promise<void> {
    if (await this.#parts.registrations.revokeCertificate(serial, reason, options)) return;
    throw new AgentError('fleet.unknown_certificate', { problem: `nobody has a certificate with the serial ${serial}` });
  }

  #describe(node: RegisteredNode, name: NodeName | undefined): FleetNode {
    const { presence, cordons, book, view } = this.#parts;
    const seen = presence.get(node.nid);
    return {
      ...node,
      name: name ?? '',
      info: name === undefined ? undefined : view.state.nodes.get(name)?.info,
      state: presence.stateOf(node.nid),
      lastSeen: seen?.lastSeen,
      status: seen?.status ?? '',
      version: seen?.version ?? '',
      address: seen?.address ?? '',
      server: seen?.server ?? '',
      cordoned: cordons.has(node.nid),
      unanswered: book.openCount(node.nid),
      problem: seen?.problem ?? '',
      auditHead: seen?.auditHead,
    };
  }

  /** One that has changed meanwhile has ended, or ends by its time. */
  async #settle(kept: KeptRow, options: CallOptions): Promise<void> {
    const { store, clock } = this.#parts;
    const state = kept.row.state === 'delivered' ? 'unknown' : 'cancelled';
    const row = settled({ kept, state, reason: 'the node was removed' }, clock.now());
    const key = instructionKey(kept.row.nid, kept.row.tag);
    await store.commit([{ key, version: kept.version }], writesOf(kept, row), options);
  }
}
