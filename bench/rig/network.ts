import { inside, must, run } from './children.ts';

/**
 * Client, proxy and back end as three hosts:
 *
 *     client 10.9.1.2-5 --veth--> [bridge 10.9.1.1  proxy  bridge 10.9.2.1] --veth--> back end 10.9.2.2
 *                                   listens on 10.9.8.10
 *
 * The listening address is alone in its /28, as a service address is, so that it can be the VIP range of a node.
 */
export const LISTEN_ADDRESS = '10.9.8.10';
export const BACKEND_ADDRESS = '10.9.2.2';
/** Several, since one address has 64,000 ports, and a closed connection keeps one for a while. */
export const CLIENT_ADDRESSES = ['10.9.1.2', '10.9.1.3', '10.9.1.4', '10.9.1.5'];

const SYSCTLS = [
  'net.ipv4.ip_forward=1',
  'net.ipv4.ip_local_port_range=1024 65535',
  'net.ipv4.ip_local_reserved_ports=5201,9000-9999,20000-29999',
  'net.ipv4.tcp_tw_reuse=1',
  'net.ipv4.tcp_max_tw_buckets=16384',
  'net.ipv4.tcp_max_syn_backlog=16384',
  'net.core.somaxconn=16384',
];

/** Three network namespaces with names of this process's own. */
export class Network implements AsyncDisposable {
  readonly client = `hfbench${process.pid}c`;
  readonly proxy = `hfbench${process.pid}p`;
  readonly backend = `hfbench${process.pid}b`;

  static async create(): Promise<Network> {
    const network = new Network();
    try {
      await network.#build();
      return network;
    } catch (error) {
      await network[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #build(): Promise<void> {
    for (const name of this.#names()) {
      await must(['ip', 'netns', 'add', name]);
      await must(['ip', '-n', name, 'link', 'set', 'lo', 'up']);
      await must(inside(name, ['sysctl', '-qw', ...SYSCTLS]));
    }
    await this.#join(this.client, 'front', '10.9.1.1', CLIENT_ADDRESSES);
    await this.#join(this.backend, 'back', '10.9.2.1', [BACKEND_ADDRESS]);
    await must(['ip', '-n', this.proxy, 'addr', 'add', `${LISTEN_ADDRESS}/32`, 'dev', 'front']);
  }

  /** A host, its addresses, and a bridge in the proxy's namespace that is its router, as a container network has. */
  async #join(host: string, bridge: string, router: string, addresses: readonly string[]): Promise<void> {
    const far = `${bridge}-peer`;
    await must(['ip', 'link', 'add', 'eth0', 'netns', host, 'type', 'veth', 'peer', 'name', far, 'netns', this.proxy]);
    await must(['ip', '-n', this.proxy, 'link', 'add', bridge, 'type', 'bridge']);
    await must(['ip', '-n', this.proxy, 'link', 'set', far, 'master', bridge]);
    for (const link of [far, bridge]) await must(['ip', '-n', this.proxy, 'link', 'set', link, 'up']);
    await must(['ip', '-n', this.proxy, 'addr', 'add', `${router}/24`, 'dev', bridge]);
    await must(['ip', '-n', host, 'link', 'set', 'eth0', 'up']);
    for (const address of addresses) await must(['ip', '-n', host, 'addr', 'add', `${address}/24`, 'dev', 'eth0']);
    await must(['ip', '-n', host, 'route', 'add', 'default', 'via', router]);
  }

  #names(): readonly string[] {
    return [this.client, this.proxy, this.backend];
  }

  /** Links go with their namespaces. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const name of this.#names()) await run(['ip', 'netns', 'del', name]);
  }
}
