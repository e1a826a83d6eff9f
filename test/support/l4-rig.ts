import { MemoryOutbox } from '../../src/adapters/outbox/memory-outbox.js';
import { L4Subsystem } from '../../src/app/dataplane/l4-subsystem.js';
import { PathMoves } from '../../src/app/dataplane/path-moves.js';
import type { ListenerId } from '../../src/domain/dataplane/model.js';
import type { NodeName } from '../../src/domain/identity/model.js';
import { ZERO_SEQUENCE } from '../../src/domain/outbox/model.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { TableDelta } from '../../src/ports/dataplane/data-plane.js';
import { FakeDataPlane } from '../fakes/fake-data-plane.js';
import { FakeListenPortMemory } from '../fakes/fake-listen-port-memory.js';
import { applyCall, options, ref, resourceRig } from './resource-rig.js';

/** Remembers what it was asked to do. */
export class WatchedDataPlane extends FakeDataPlane {
  readonly deltas: string[] = [];
  connectTimeoutMs: number | undefined;

  override async apply(delta: TableDelta, callOptions: CallOptions) {
    const upserts = delta.upsert.map(({ id, listenPort }) => `+${id}:${listenPort}`);
    this.deltas.push([...upserts, ...delta.remove.map((id) => `-${id}`)].join(' '));
    this.connectTimeoutMs = delta.upsert[0]?.connectTimeoutMs ?? this.connectTimeoutMs;
    return super.apply(delta, callOptions);
  }
}

interface L4RigOptions {
  readonly dev?: boolean;
  readonly memory?: FakeListenPortMemory;
  readonly dataPlane?: WatchedDataPlane;
  readonly following?: boolean;
  readonly kernel?: boolean;
}

/** The L4 subsystem on a view that follows a log in memory, and a fake data plane. */
export async function l4Rig({
  dev = false,
  memory = new FakeListenPortMemory(),
  dataPlane = new WatchedDataPlane(),
  following = true,
  kernel = false,
}: L4RigOptions = {}) {
  const rig = await resourceRig({ following });
  const outbox = new MemoryOutbox();
  const moves = new PathMoves();
  const make = (plane = dataPlane) =>
    new L4Subsystem({
      nodeId: 'here' as NodeName,
      view: rig.view,
      dataPlane: plane,
      memory,
      clock: rig.clock,
      random: () => 0,
      logger: rig.logger,
      mayMovePorts: dev,
      connectTimeoutMs: 2_000,
      outbox,
      kernel,
      moves,
    });
  const events = async () =>
    (await outbox.read(ZERO_SEQUENCE, 100, options)).map(({ labels, message }) => `${labels.subject}: ${message}`);
  const apply = async (...values: readonly unknown[]) => {
    const { outcome } = await rig.resources.apply(applyCall(values), options);
    if (outcome === 'invalid') throw new Error('invalid');
    await rig.clock.advance(0);
  };
  const remove = async (name: string) => {
    await rig.resources.delete({ refs: [ref(name)], dryRun: false, ignoreNotFound: false }, options);
    await rig.clock.advance(0);
  };
  return { ...rig, memory, dataPlane, outbox, moves, make, events, apply, remove, l4: make() };
}

export const id = (name: string) => `default/${name}/http` as ListenerId;
