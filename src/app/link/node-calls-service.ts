import type { ControlPlaneNode, InstallProgress, NodelogEntry, OverlayPeer, OverlaySet } from '../../domain/link/calls.js';
import type { Aid, LinkMessage } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { NodeCalls } from '../../ports/driving/node-calls.js';
import type { PeerNode } from '../../ports/driving/node-streams.js';

/** What becomes of a node's news. What is not given goes nowhere. */
export interface NodeNews {
  readonly status?: (node: PeerNode, status: string) => void;
  readonly nodelog?: (node: PeerNode, entry: NodelogEntry) => void;
  readonly installProgress?: (node: PeerNode, progress: InstallProgress) => void;
  readonly uploaded?: (node: PeerNode, reply: LinkMessage, options: CallOptions) => Promise<void>;
}

/** Who knows the peers of a node. */
export interface PeerBook {
  sync(node: PeerNode, self: OverlayPeer | undefined, options: CallOptions): Promise<OverlaySet>;
}

/** What nodes ask a control plane, and tell it, outside of their streams. */
export class NodeCallsService implements NodeCalls {
  readonly #news: NodeNews;
  readonly #peers: PeerBook;
  readonly #apiServers: (aid: Aid) => readonly ControlPlaneNode[];

  constructor(news: NodeNews, peers: PeerBook, apiServers: (aid: Aid) => readonly ControlPlaneNode[]) {
    this.#news = news;
    this.#peers = peers;
    this.#apiServers = apiServers;
  }

  async controlPlaneNodes({ identity }: PeerNode): Promise<readonly ControlPlaneNode[]> {
    return this.#apiServers(identity.aid);
  }

  async manualSync(node: PeerNode, self: OverlayPeer | undefined, _ready: boolean, options: CallOptions): Promise<OverlaySet> {
    return this.#peers.sync(node, self, options);
  }

  async updateStatus(node: PeerNode, status: string): Promise<void> {
    this.#news.status?.(node, status);
  }

  async addNodelog(node: PeerNode, entry: NodelogEntry): Promise<void> {
    this.#news.nodelog?.(node, entry);
  }

  async installProgress(node: PeerNode, progress: InstallProgress): Promise<void> {
    this.#news.installProgress?.(node, progress);
  }

  async uploaded(node: PeerNode, reply: LinkMessage, options: CallOptions): Promise<void> {
    await this.#news.uploaded?.(node, reply, options);
  }
}
