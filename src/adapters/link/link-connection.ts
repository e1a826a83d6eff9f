import { lookup } from 'node:dns/promises';
import { connect } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import { Client, connectivityState, getClientChannel } from '@grpc/grpc-js';
import { AgentError } from '../../domain/kernel/errors.js';
import { LIVENESS_MS, MAX_RECEIVED_BYTES } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { LinkAddress } from '../../ports/link/control-link.js';
import { MutualCredentials, type Transport } from './mutual-credentials.js';
import { connectionFailure } from './tls-failure.js';

/** PEM. */
export interface ClientPair {
  /** The root of the mutual channel: no other is trusted. */
  readonly ca: string;
  readonly certificate: string;
  readonly privateKey: string;
}

/** @throws whatever reading files throws */
export type ReadPair = (options: CallOptions) => Promise<ClientPair>;

/** Over all addresses of a name. */
const CONNECT_MS = 10_000;
/** How often the counter of received bytes is looked at: so much later at most is a byte seen. */
const LOOK_MS = 500;
/** A message of 12 MiB in 192 round trips of the usual 64 KiB window would take 20 s at 100 ms. */
const WINDOW_BYTES = 1024 * 1024;
/** Pings of HTTP/2, only to servers that announce that they take them. */
const PINGS = { 'grpc.keepalive_time_ms': 10_000, 'grpc.keepalive_timeout_ms': 5_000 };

const options = {
  'grpc.max_receive_message_length': MAX_RECEIVED_BYTES,
  'grpc.enable_http_proxy': 0,
  'grpc.enable_retries': 0,
  'grpc.enable_channelz': 0,
  // A write is done when the transport has taken it, not when it was put aside for a retry that there is none of.
  'grpc.per_rpc_retry_buffer_size': 0,
  'grpc.service_config_disable_resolution': 1,
  'grpc.use_local_subchannel_pool': 1,
  'grpc-node.flow_control_window': WINDOW_BYTES,
};

export interface DialParts {
  readonly address: LinkAddress;
  readonly readPair: ReadPair;
  readonly pings: boolean;
  readonly clock: Clock;
}

interface LinkConnectionParts {
  readonly address: LinkAddress;
  readonly client: Client;
  readonly transport: Transport;
  readonly pings: boolean;
  readonly clock: Clock;
}

/** One connection to a control plane. It is not made anew when it dies. */
export class LinkConnection {
  readonly address: LinkAddress;
  readonly client: Client;
  readonly pings: boolean;
  /** How many are on it. */
  calls = 0;
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #timer: NodeJS.Timeout;
  #bytes: number;
  #lastByteAt: number;

  constructor({ address, client, transport, pings, clock }: LinkConnectionParts) {
    this.address = address;
    this.client = client;
    this.pings = pings;
    this.#transport = transport;
    this.#clock = clock;
    this.#bytes = transport.raw.bytesRead;
    this.#lastByteAt = clock.monotonic();
    this.#timer = setInterval(() => this.lastByteAt(), LOOK_MS);
    this.#timer.unref();
    transport.tls.once('close', () => clearInterval(this.#timer));
  }

  get died(): boolean {
    return this.#transport.tls.destroyed || this.#transport.raw.destroyed;
  }

  /**
   * Whether another stream may be put on it: one that has been silent for so long may be dead without anybody's knowing, and one that its
   * server winds up (GOAWAY) takes none.
   */
  get usable(): boolean {
    const takesStreams = getClientChannel(this.client).getConnectivityState(false) === connectivityState.READY;
    return !this.died && takesStreams && this.#clock.monotonic() - this.lastByteAt() < LIVENESS_MS;
  }

  /** Of the socket, whatever the byte belonged to: its counter is looked at, as HTTP/2 reads past JavaScript. */
  lastByteAt(): number {
    const { bytesRead } = this.#transport.raw;
    if (bytesRead > this.#bytes) {
      this.#bytes = bytesRead;
      this.#lastByteAt = this.#clock.monotonic();
    }
    return this.#lastByteAt;
  }

  localAddress(): string {
    return this.#transport.raw.localAddress ?? '';
  }

  /** Streams on it end. Safe twice. */
  destroy(): void {
    clearInterval(this.#timer);
    this.client.close();
    this.#transport.tls.destroy();
  }
}

/**
 * Asks the name service, then tries each of its answers, 10 s in all.
 * @throws AgentError `link.unreachable`, `certificate.*`; on abort with the signal's reason
 */
export async function dial({ address, readPair, pings, clock }: DialParts, { signal }: CallOptions): Promise<LinkConnection> {
  const { host, port } = address;
  const secureContext = await loadPair(readPair, { signal });
  const addresses = await resolve(host, signal);
  // Each has its share, so that one behind a silent firewall leaves time for the next.
  const budgetMs = CONNECT_MS / addresses.length;
  let failure: unknown;
  for (const ip of addresses) {
    signal.throwIfAborted();
    const where = host === ip ? hostPort(host, port) : `${hostPort(host, port)} (${ip})`;
    const deadline = AbortSignal.timeout(budgetMs);
    try {
      const attempt = AbortSignal.any([signal, deadline]);
      return await dialOne({ host, ip, port, where, secureContext, pings, clock }, attempt);
    } catch (error) {
      signal.throwIfAborted();
      failure = deadline.aborted ? tooLate(where, budgetMs, error) : error;
    }
  }
  throw failure;
}

function tooLate(where: string, budgetMs: number, cause: unknown): AgentError {
  return new AgentError('link.unreachable', { problem: `${where}: no connection within ${budgetMs / 1_000} s` }, { cause });
}

async function loadPair(readPair: ReadPair, callOptions: CallOptions): Promise<SecureContext> {
  try {
    const { ca, certificate, privateKey } = await readPair(callOptions);
    return createSecureContext({ ca, cert: certificate, key: privateKey, minVersion: 'TLSv1.2' });
  } catch (error) {
    callOptions.signal.throwIfAborted();
    if (error instanceof AgentError) throw error;
    const problem = `the certificate of this node cannot be used: ${error instanceof Error ? error.message : String(error)}`;
    throw new AgentError('certificate.unusable', { problem }, { cause: error });
  }
}

async function resolve(host: string, signal: AbortSignal): Promise<readonly string[]> {
  try {
    const found = await untilAborted(lookup(host, { all: true }), signal);
    return found.map(({ address }) => address);
  } catch (error) {
    signal.throwIfAborted();
    throw connectionFailure(host, error);
  }
}

interface Dial {
  readonly host: string;
  readonly ip: string;
  readonly port: number;
  readonly where: string;
  readonly secureContext: SecureContext;
  readonly pings: boolean;
  readonly clock: Clock;
}

async function dialOne(
  { host, ip, port, where, secureContext, pings, clock }: Dial,
  signal: AbortSignal,
): Promise<LinkConnection> {
  let transport: Transport | undefined;
  let failure: AgentError | undefined;
  const credentials = new MutualCredentials({
    host,
    where,
    secureContext,
    onConnected: (made) => {
      transport = made;
    },
    onFailed: (error) => {
      failure ??= error;
    },
  });
  const target = ip.includes(':') ? `ipv6:[${ip}]:${port}` : `ipv4:${ip}:${port}`;
  const authority = { 'grpc.default_authority': hostPort(host, port) };
  const client = new Client(target, credentials, { ...options, ...authority, ...(pings ? PINGS : {}) });
  try {
    await connected(client, signal);
    if (transport !== undefined) return new LinkConnection({ address: { host, port }, client, transport, pings, clock });
    throw new AgentError('link.unreachable', { problem: `${where}: the connection was lost at once` });
  } catch (error) {
    client.close();
    transport?.tls.destroy();
    signal.throwIfAborted();
    throw failure ?? (await tcpFailure(ip, port, where, signal)) ?? error;
  }
}

/** Until its HTTP/2 settings have come. Rejects at the first failure, where a channel would go on trying. */
async function connected(client: Client, signal: AbortSignal): Promise<void> {
  const channel = getClientChannel(client);
  for (let state = channel.getConnectivityState(true); state !== connectivityState.READY; ) {
    if (state === connectivityState.TRANSIENT_FAILURE || state === connectivityState.SHUTDOWN) {
      throw new AgentError('link.unreachable', { problem: 'the connection could not be made' });
    }
    const before = state;
    const changed = new Promise<void>((resolve) =>
      channel.watchConnectivityState(before, Number.POSITIVE_INFINITY, () => resolve()),
    );
    await untilAborted(changed, signal);
    state = channel.getConnectivityState(true);
  }
}

/** A connection of our own says what the channel's would not; undefined when it can be made. */
async function tcpFailure(ip: string, port: number, where: string, signal: AbortSignal): Promise<AgentError | undefined> {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const socket = connect({ host: ip, port }, () => resolve(undefined));
  socket.once('error', resolve);
  try {
    const error = await untilAborted(promise, signal);
    return error === undefined ? undefined : connectionFailure(where, error);
  } finally {
    socket.destroy();
  }
}

async function untilAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function hostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
