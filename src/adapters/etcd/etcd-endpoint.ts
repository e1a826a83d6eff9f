import { Channel, type ChannelCredentials, credentials } from '@grpc/grpc-js';
import { ClusterClient, KVClient, MaintenanceClient, WatchClient } from '../generated/etcd/etcdserverpb/rpc.js';

/** PEM. Without a CA the system's are trusted. */
export interface EtcdTls {
  readonly ca?: string | undefined;
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
}

/** A page of 64 log entries of 1 MiB, or 1,000 keys; what is larger is asked for in smaller pages. */
const MOST_RECEIVED_BYTES = 80 * 1024 * 1024;

const channelOptions = {
  'grpc.max_receive_message_length': MOST_RECEIVED_BYTES,
  'grpc.max_send_message_length': -1,
  // etcd takes pings each 5 s at most; a frozen member is noticed after 13 s, and by the deadline of a call before that.
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 3_000,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  'grpc.enable_retries': 0,
  'grpc.enable_http_proxy': 0,
  'grpc.service_config_disable_resolution': 1,
  'grpc.use_local_subchannel_pool': 1,
};

/** One member: a connection, made when it is first used. */
export class EtcdEndpoint {
  readonly url: string;
  readonly kv: KVClient;
  readonly watch: WatchClient;
  readonly cluster: ClusterClient;
  readonly maintenance: MaintenanceClient;
  readonly #channel: Channel;

  /** `url`: `http://host:port` or `https://host:port`. */
  constructor(url: string, tls: EtcdTls) {
    const { protocol, hostname, port } = new URL(url);
    const secure = protocol === 'https:' ? createTls(tls) : credentials.createInsecure();
    const target = `dns:${hostname}:${port === '' ? '2379' : port}`;
    this.url = url;
    this.#channel = new Channel(target, secure, channelOptions);
    this.kv = new KVClient(target, secure, { channelOverride: this.#channel });
    this.watch = new WatchClient(target, secure, { channelOverride: this.#channel });
    this.cluster = new ClusterClient(target, secure, { channelOverride: this.#channel });
    this.maintenance = new MaintenanceClient(target, secure, { channelOverride: this.#channel });
  }

  close(): void {
    this.#channel.close();
  }
}

function createTls({ ca, certificate, key }: EtcdTls): ChannelCredentials {
  const pem = (text: string | undefined) => (text === undefined ? null : Buffer.from(text));
  return credentials.createSsl(pem(ca), pem(key), pem(certificate));
}
