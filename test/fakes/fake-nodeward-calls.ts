import type { InstallCommand } from '../../src/domain/install/model.js';
import { AgentError, type ErrorCode } from '../../src/domain/kernel/errors.js';
import type { ControlPlaneNode, NodelogEntry, OverlayPeer, OverlaySet } from '../../src/domain/link/calls.js';
import { type LinkMessage, MAX_SENT_BYTES } from '../../src/domain/link/model.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { IssuedPair } from '../../src/ports/driving/enrolment.js';
import type { NodewardCalls } from '../../src/ports/link/nodeward-calls.js';

/** A control plane whose answers a test sets, and that keeps what it is told as `name JSON`. */
export class FakeNodewardCalls implements NodewardCalls {
  readonly told: string[] = [];
  nodes: readonly ControlPlaneNode[] = [];
  peers: readonly OverlayPeer[] = [];
  /** The install list; undefined: there is none. */
  commands: readonly InstallCommand[] | undefined;
  /** That of the node in the overlay. */
  address = '';
  /** Its own making of keys is left out. */
  issued: IssuedPair = { privateKey: '', certificate: 'a certificate', ca: 'a root' };
  #failure: ErrorCode | undefined;

  /** Every call from now on; undefined ends it. */
  fail(code: ErrorCode | undefined): void {
    this.#failure = code;
  }

  async controlPlaneNodes(options: CallOptions): Promise<readonly ControlPlaneNode[]> {
    this.#enter(options);
    return this.nodes;
  }

  async manualSync(self: OverlayPeer, nodeIsReady: boolean, options: CallOptions): Promise<OverlaySet> {
    this.#enter(options);
    this.#tell('manualSync', { self, nodeIsReady });
    return { peers: this.peers, address: this.address };
  }

  async installCommands(options: CallOptions): Promise<readonly InstallCommand[]> {
    this.#enter(options);
    if (this.commands !== undefined) return this.commands;
    throw new AgentError('link.refused', { problem: 'no install plan is configured on this control plane' });
  }

  async updateStatus(status: string, options: CallOptions): Promise<void> {
    this.#enter(options);
    this.#tell('updateStatus', { status });
  }

  async addNodelog(entry: NodelogEntry, options: CallOptions): Promise<void> {
    this.#enter(options);
    const { severity, type, message, code, cause, remedy, docsUrl } = entry;
    this.#tell('addNodelog', { severity, type, message, code, cause, remedy, docsUrl });
  }

  async regenerateCertificate(_csr: Uint8Array, options: CallOptions): Promise<IssuedPair> {
    this.#enter(options);
    return this.issued;
  }

  async uploadReply({ tag, type, jsonB64 }: LinkMessage, options: CallOptions): Promise<void> {
    this.#enter(options);
    if (jsonB64.length > MAX_SENT_BYTES) throw new AgentError('link.too_large', { problem: `${jsonB64.length} bytes` });
    this.#tell('uploaded', { tag, type, length: jsonB64.length });
  }

  #enter({ signal }: CallOptions): void {
    signal.throwIfAborted();
    if (this.#failure !== undefined) throw new AgentError(this.#failure, { problem: 'told to fail' });
  }

  #tell(name: string, what: unknown): void {
    this.told.push(`${name} ${JSON.stringify(what)}`);
  }
}
