import { Channel, credentials } from '@grpc/grpc-js';
import type { NodeName } from '../../domain/identity/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { MAX_RECEIVED_BYTES } from '../../domain/link/model.js';
import type { Cursor, LogFrame, Proposal, ProposeResult, Snapshot } from '../../domain/log/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { LinkAddress } from '../../ports/link/control-link.js';
import type { OrderedLog } from '../../ports/log/ordered-log.js';
import { GrpcOrderedLog } from './grpc-ordered-log.js';

/** PEM. */
export interface LogPair {
  readonly ca: string;
  readonly certificate: string;
  readonly privateKey: string;
}

export interface GrpcLogConnectionParts {
  /** Servers of one fleet; at least one. */
  readonly addresses: readonly LinkAddress[];
  /** Read for each channel. */
  readonly readPair: (options: CallOptions) => Promise<LogPair>;
  readonly nodeId: NodeName;
  readonly clock: Clock;
}

interface Open {
  readonly log: GrpcOrderedLog;
  readonly channel: Channel;
}

const channelOptions = {
  'grpc.max_receive_message_length': MAX_RECEIVED_BYTES,
  'grpc.enable_http_proxy': 0,
  'grpc.service_config_disable_resolution': 1,
  'grpc.use_local_subchannel_pool': 1,
  'grpc.max_reconnect_backoff_ms': 10_000,
  // A path that died without a word is noticed within 15 s. Only servers of ours have this service, and they take pings.
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5_000,
};

/**
 * The log of whichever server can be reached, over mutual TLS. A call that finds its server out of reach rejects, and the next one asks
 * the next server; watches in progress stay where they are.
 */
export class GrpcLogConnection implements OrderedLog {
  readonly #parts: GrpcLogConnectionParts;
  #opening: Promise<Open> | undefined;
  #index = 0;

  constructor(parts: GrpcLogConnectionParts) {
    this.#parts = parts;
  }

  propose(proposal: Proposal, options: CallOptions): Promise<ProposeResult> {
    return this.#with((log) => log.propose(proposal, options), options);
  }

  snapshot(prefix: string, options: CallOptions): Promise<Snapshot> {
    return this.#with((log) => log.snapshot(prefix, options), options);
  }

  head(options: CallOptions): Promise<Cursor> {
    return this.#with((log) => log.head(options), options);
  }

  async *watch(from: Cursor, options: CallOptions): AsyncIterable<LogFrame> {
    const opening = this.#open(options);
    try {
      const { log } = await opening;
      yield* log.watch(from, options);
    } catch (error) {
      this.#leave(opening, error);
      throw error;
    }
  }

  /** From the next call on, a channel of its own with the pair as it is on disk then. */
  reopen(): void {
    const former = this.#opening;
    this.#opening = undefined;
    // Calls in progress end with their channel: they are repeated on the new one by those who need them.
    void former?.then(({ channel }) => channel.close()).catch(() => {});
  }

  close(): void {
    this.reopen();
  }

  async #with<T>(call: (log: OrderedLog) => Promise<T>, options: CallOptions): Promise<T> {
    const opening = this.#open(options);
    try {
      return await call((await opening).log);
    } catch (error) {
      this.#leave(opening, error);
      throw error;
    }
  }

  #open(options: CallOptions): Promise<Open> {
    this.#opening ??= this.#make(options);
    return this.#opening;
  }

  async #make(options: CallOptions): Promise<Open> {
    const { addresses, readPair, clock, nodeId } = this.#parts;
    const address = addresses[this.#index % addresses.length];
    if (address === undefined) throw new AgentError('link.unreachable', { problem: 'no control plane is named' });
    const { ca, certificate, privateKey } = await readPair(options);
    const secure = credentials.createSsl(Buffer.from(ca), Buffer.from(privateKey), Buffer.from(certificate));
    const host = address.host.includes(':') ? `[${address.host}]` : address.host;
    const channel = new Channel(`dns:${host}:${address.port}`, secure, channelOptions);
    return { log: new GrpcOrderedLog({ channel, clock, nodeId }), channel };
  }

  /** What cannot be opened or reached is not asked again. */
  #leave(opening: Promise<Open>, error: unknown): void {
    const isGone = error instanceof AgentError && (error.code === 'link.unreachable' || error.code === 'link.refused');
    if (this.#opening !== opening || !(isGone || !(error instanceof AgentError))) return;
    this.#index++;
    this.reopen();
  }
}
