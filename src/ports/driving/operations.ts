import type { Protocol } from '../../domain/dataplane/model.js';
import type { LinkKind } from '../../domain/overlay/model.js';
import type { DropReason } from '../../domain/vip/hold.js';
import type { Generation } from '../../domain/vip/model.js';
import type { CallOptions } from '../call-options.js';
import type { ListenerStats } from '../dataplane/data-plane.js';
import type { BalancerStatus } from './api-balancer.js';

export interface SubsystemStatus {
  readonly name: string;
  readonly state: string;
  /** Wall clock, milliseconds. */
  readonly since: number;
  readonly reason: string | undefined;
}

/** Something that is not as it should be, and what to do. */
export interface StatusProblem {
  readonly subject: string;
  readonly reason: string;
  readonly since: number | undefined;
  readonly remedy: string;
}

/** A node's link to its control plane. Times are of the wall clock, milliseconds. */
export interface LinkStatus {
  /** Undefined while there is no link. */
  readonly connected:
    | {
        readonly since: number;
        /** Host and port. */
        readonly address: string;
        /** Undefined for an older server, which says nothing of itself. */
        readonly server: { readonly id: string; readonly fleet: string; readonly epoch: bigint } | undefined;
        /** Its clock - ours, milliseconds. */
        readonly skewMs: number | undefined;
        /** How long ago the newest heartbeat was answered. */
        readonly beatMs: number | undefined;
      }
    | undefined;
  readonly lostSince: number | undefined;
  readonly nextAttemptAt: number | undefined;
  /** Of the newest attempt or stream that ended badly, with what made it so. */
  readonly lastError: { readonly message: string; readonly at: number } | undefined;
}

/** The fleet, as one replica of its control plane knows it. */
export interface FleetStatus {
  /** Id of this replica. */
  readonly server: string;
  /** All that have registered. */
  readonly nodes: number;
  readonly online: number;
  readonly offline: number;
  /** Their server has gone, and no other has them yet; or this one began just now. */
  readonly unknown: number;
  /** Unfinished instructions. */
  readonly unanswered: number;
  /** Nodes whose streams are at this replica. */
  readonly links: number;
  /** Nodes that follow the log at this replica. */
  readonly followers: number;
  /** All that live, this one too, by id. */
  readonly replicas: readonly ReplicaStatus[];
  /** What it keeps everything in. */
  readonly stores: readonly StoreStatus[];
  /** Its own: of its authorities, and of the ports that are open. */
  readonly certificates: readonly CertificateStatus[];
}

export interface ReplicaStatus {
  readonly id: string;
  /** Since it last said that it lives, milliseconds; 0 for the one that is asked. */
  readonly silentMs: number;
}

export interface StoreStatus {
  /** `control`: nodes, certificates, instructions and so on; `log`: services and endpoints. */
  readonly name: 'control' | 'log';
  readonly backend: 'embedded' | 'etcd';
  /** Wall clock, milliseconds; undefined while it answers. */
  readonly failingSince: number | undefined;
  /** How long the newest call took that it answered; undefined before the first. */
  readonly answeredInMs: number | undefined;
}

export interface CertificateStatus {
  /** `registration`, `registration root` … */
  readonly name: string;
  /** Wall clock, milliseconds. */
  readonly expiresAt: number;
}

/** A node's place in the overlay, as it was when it was read last. */
export interface OverlayStatus {
  /** Who carries the packets; undefined while there is no interface. */
  readonly link: LinkKind | undefined;
  readonly publicKey: string;
  /** Empty while it has none. */
  readonly address: string;
  readonly mtu: number;
  readonly peers: readonly OverlayPeerStatus[];
}

export interface OverlayPeerStatus {
  readonly publicKey: string;
  /** Its first address, or network. */
  readonly address: string;
  /** Empty while none is known. */
  readonly endpoint: string;
  /** `down`: there was no handshake for 180 s. */
  readonly state: 'up' | 'down';
  /** Undefined when there was none. */
  readonly handshakeAgeMs: number | undefined;
  readonly receivedBytes: number;
  readonly sentBytes: number;
  readonly ranges: readonly string[];
}

export interface DataPlaneStatus {
  readonly threads: number;
  readonly listeners: number;
  readonly listenerBudget: number;
  readonly failedListeners: number;
  readonly activeConnections: number;
  readonly connectionLimit: number;
}

/** A node's part in the virtual IP of the control plane. */
export interface VipStatus {
  readonly address: string;
  /** Whether this node has it. */
  readonly held: boolean;
  /** Since when it has it or has it not, wall clock. */
  readonly since: number;
  /** For how long the kernel keeps it if nobody says anything any more; 0 where it is not held. */
  readonly leftMs: number;
  /** Of the last change that was applied. */
  readonly generation: Generation;
  /** It is held without the control plane. */
  readonly alone: boolean;
  /** What happened to it, since the start of the process. */
  readonly counts: {
    readonly taken: number;
    /** Times that a third hand had removed or changed it. */
    readonly removedByOthers: number;
    /** Times that the node gave it up by itself, by why. */
    readonly dropped: Readonly<Record<DropReason, number>>;
  };
}

export interface NodeStatus {
  readonly version: string;
  readonly mode: string;
  readonly nodeId: string;
  readonly hostname: string;
  readonly dataDir: string;
  readonly startedAt: number;
  readonly ready: boolean;
  readonly subsystems: readonly SubsystemStatus[];
  readonly log: { readonly revision: bigint; readonly logId: string; readonly objects: number; readonly ageMs: number };
  /** Not of a control plane, which carries no traffic. */
  readonly dataPlane?: DataPlaneStatus | undefined;
  readonly metricsListen: string;
  /** Not empty: degraded. */
  readonly problems: readonly StatusProblem[];
  /** Of an agent. */
  readonly link?: LinkStatus | undefined;
  /** Of a control plane. */
  readonly fleet?: FleetStatus | undefined;
  /** Of an agent, once the overlay was read. */
  readonly overlay?: OverlayStatus | undefined;
  /** Of an agent. */
  readonly apiBalancer?: BalancerStatus | undefined;
  /** Of an agent that may have the virtual IP. */
  readonly vip?: VipStatus | undefined;
}

export interface NodeEvent {
  readonly sequence: bigint;
  readonly time: number;
  readonly severity: string;
  readonly subject: string;
  readonly message: string;
}

/** The counters of a service port, with what they count. */
export interface ListenerTraffic extends ListenerStats {
  /** Undefined for a listener whose service is gone. */
  readonly protocol: Protocol | undefined;
  /** Endpoints that the service has, whether they are used or not. */
  readonly declaredEndpoints: number;
}

/** What this node is doing, for those who operate it. Changes nothing. */
export interface Operations {
  status(): NodeStatus;
  /** The retained events, then with `follow` every new one until abort. */
  events(follow: boolean, options: CallOptions): AsyncIterable<NodeEvent>;
  traffic(): { readonly monotonicMs: number; readonly listeners: readonly ListenerTraffic[] };
}
