import { AgentError } from '../../domain/kernel/errors.js';
import { formatAddressPort, formatIpv4Range, type IpAddress, type Ipv4Range } from '../../domain/kernel/network.js';
import { type OverlayChanges, overlayChanges, type PeerChange } from '../../domain/overlay/diff.js';
import {
  formatOverlayAddress,
  KEEPALIVE_S,
  networkOf,
  type Observed,
  type ObservedLink,
  OVERLAY_DEVICE,
  OVERLAY_PORT,
  type OverlayConfig,
  type PeerFailure,
  type PublicKey,
  publicKey,
  ROUTE_PROTOCOL,
} from '../../domain/overlay/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { CommandResult, CommandRunner } from '../../ports/command/command-runner.js';
import type { OverlayDevice } from '../../ports/overlay/overlay-device.js';
import { parseAddresses, parseLink, parseRoutes } from './ip-json.js';
import type { OverlayKeyFile } from './overlay-key-file.js';
import type { UfwRanges } from './ufw-ranges.js';
import { parseWgDump, type WgDump } from './wg-dump.js';

const CALL_MS = 10_000;
/** 10,000 peers with 100 ranges each. */
const MAX_DUMP_BYTES = 32 * 1024 * 1024;
/** Of one `wg set`: its arguments stay far below the kernel's limit of 2 MiB. */
const PEERS_A_CALL = 50;
const PROTOCOL = String(ROUTE_PROTOCOL);

export interface WgOverlayParts {
  readonly commands: CommandRunner;
  readonly key: OverlayKeyFile;
  readonly firewall: UfwRanges;
  /** How a program is started that is to outlive this one; undefined where there is no systemd. */
  readonly systemdRun: string | undefined;
}

/** WireGuard by `wg` and `ip`; the link is the kernel's, or that of wireguard-go where the kernel has none. */
export class WgOverlayDevice implements OverlayDevice {
  readonly #parts: WgOverlayParts;
  /** Of the machine, when the peers were last told. */
  #ownAddresses: string | undefined;

  constructor(parts: WgOverlayParts) {
    this.#parts = parts;
  }

  async observe(options: CallOptions): Promise<Observed> {
    const found = await this.#link(options);
    const own = await this.#ownKey(found?.dump, options);
    const { stdout } = await this.#read(['ip', '-j', '-4', 'route', 'show', 'proto', 'kernel', 'scope', 'link'], options);
    const routes = parseRoutes(stdout);
    if (routes === undefined) throw unreadable('ip route');
    const connected = routes.filter(({ device }) => device !== OVERLAY_DEVICE).map(({ range }) => range);
    return { publicKey: own, link: found?.link, connected };
  }

  async set(config: OverlayConfig, options: CallOptions): Promise<readonly PeerFailure[]> {
    const link = (await this.#link(options)) ?? (await this.#make(options));
    const own = await this.#ownKey(link.dump, options);
    await this.#setDevice(config, link, own, options);
    const changes = overlayChanges(config, link.link);
    const failed = await this.#setPeers(changes, options);
    if (link.link.kind === 'wireguard-go') await this.#forgetSources(options);
    await this.#setRoutes(changes, options);
    const network = networkOfSelf(config, link.link);
    await this.#parts.firewall.set([...(network === undefined ? [] : [network]), ...config.routes], options);
    return failed;
  }

  async remove(options: CallOptions): Promise<void> {
    const own = await this.#parts.key.load(options);
    const found = own === undefined ? undefined : await this.#ownLink(options);
    if (found !== undefined && publicKey(found.dump.publicKey) === own)
      await this.#done(['ip', 'link', 'del', 'dev', OVERLAY_DEVICE], options);
    await this.#parts.firewall.clear(options);
  }

  async probe(address: IpAddress, payloadBytes: number, options: CallOptions): Promise<boolean | undefined> {
    const size = ['-M', 'do', '-s', String(payloadBytes)] as const;
    const argv = ['ping', '-n', '-c', '2', '-i', '0.2', '-W', '1', ...size, '-I', OVERLAY_DEVICE, address] as const;
    try {
      const { exitCode } = await this.#parts.commands.run({ argv, timeoutMs: 4_000 }, options);
      return exitCode === 0;
    } catch (error) {
      options.signal.throwIfAborted();
      if (error instanceof AgentError) return undefined;
      throw error;
    }
  }

  /** Undefined when there is none. */
  async #link(options: CallOptions): Promise<{ readonly link: ObservedLink; readonly dump: WgDump } | undefined> {
    const shown = await this.#run(['ip', '-j', '-d', 'link', 'show', 'dev', OVERLAY_DEVICE], options);
    if (shown.exitCode !== 0 && /does not exist/.test(shown.stderr)) return undefined;
    const facts = shown.exitCode === 0 ? parseLink(shown.stdout) : undefined;
    if (facts === undefined) throw unreadable(`ip link: ${shown.stderr.trim()}`);
    if (facts.kind === undefined)
      throw new AgentError('overlay.foreign', { problem: `${OVERLAY_DEVICE} is no WireGuard interface` });
    // Its first line has the private key: what it says is in no message.
    const dumped = await this.#run(['wg', 'show', OVERLAY_DEVICE, 'dump'], options);
    const dump = dumped.exitCode === 0 && dumped.dropped === 0 ? parseWgDump(dumped.stdout) : undefined;
    if (dump === undefined)
      throw unreadable(`wg show ${OVERLAY_DEVICE} dump: ${dumped.stderr.trim() || 'its output is not understood'}`);
    const addresses = parseAddresses(
      (await this.#read(['ip', '-j', '-4', 'addr', 'show', 'dev', OVERLAY_DEVICE], options)).stdout,
    );
    const ours = ['ip', '-j', '-4', 'route', 'show', 'dev', OVERLAY_DEVICE, 'proto', PROTOCOL] as const;
    const routes = parseRoutes((await this.#read(ours, options)).stdout, OVERLAY_DEVICE);
    if (addresses === undefined || routes === undefined) throw unreadable('ip');
    const { kind, up, mtu } = facts;
    const { port, peers } = dump;
    return { link: { kind, up, mtu, port, addresses, peers, routes: routes.map(({ range }) => range) }, dump };
  }

  /** Undefined when there is none, or it is none of WireGuard. */
  async #ownLink(options: CallOptions) {
    try {
      return await this.#link(options);
    } catch (error) {
      if (error instanceof AgentError && (error.code === 'overlay.foreign' || error.code === 'command.not_found'))
        return undefined;
      throw error;
    }
  }

  async #make(options: CallOptions): Promise<{ readonly link: ObservedLink; readonly dump: WgDump }> {
    const added = await this.#run(['ip', 'link', 'add', OVERLAY_DEVICE, 'type', 'wireguard'], options);
    if (added.exitCode !== 0) await this.#makeInUserSpace(added.stderr.trim(), options);
    const link = await this.#link(options);
    if (link === undefined) throw notSet(`there is no ${OVERLAY_DEVICE} after it was made`);
    return link;
  }

  /** Its own unit, or a session of its own: it carries packets while this process restarts. */
  async #makeInUserSpace(why: string, options: CallOptions): Promise<void> {
    const program = ['wireguard-go', OVERLAY_DEVICE] as const;
    const { systemdRun } = this.#parts;
    const argv =
      systemdRun === undefined
        ? (['setsid', '--fork', '--wait', ...program] as const)
        : ([
            systemdRun,
            '--quiet',
            '--collect',
            `--unit=holdfast-${OVERLAY_DEVICE}`,
            '--service-type=forking',
            ...program,
          ] as const);
    const { exitCode, stderr, stdout } = await this.#run(argv, options);
    if (exitCode !== 0)
      throw notSet(`ip link add: ${why}; wireguard-go: ${stderr.trim() || stdout.trim() || `exit code ${exitCode}`}`);
  }

  /** That of the file; where there is none, the interface's, which its peers know. */
  async #ownKey(dump: WgDump | undefined, options: CallOptions): Promise<PublicKey> {
    const { key } = this.#parts;
    const kept = await key.load(options);
    if (kept !== undefined) return kept;
    return dump?.privateKey === undefined ? key.make(options) : key.keep(dump.privateKey, options);
  }

  async #setDevice(
    { self, mtu }: OverlayConfig,
    { link, dump }: { readonly link: ObservedLink; readonly dump: WgDump },
    own: PublicKey,
    options: CallOptions,
  ): Promise<void> {
    if (publicKey(dump.publicKey) !== own)
      await this.#done(['wg', 'set', OVERLAY_DEVICE, 'private-key', this.#parts.key.path], options);
    if (link.port !== OVERLAY_PORT) await this.#done(['wg', 'set', OVERLAY_DEVICE, 'listen-port', String(OVERLAY_PORT)], options);
    const wanted = self === undefined ? undefined : formatOverlayAddress(self);
    const present = link.addresses.map(formatOverlayAddress);
    // First: the kernel removes the other addresses of a network with its first one.
    for (const other of wanted === undefined ? [] : present.filter((one) => one !== wanted))
      await this.#done(['ip', 'addr', 'del', other, 'dev', OVERLAY_DEVICE], options);
    if (wanted !== undefined && !(present[0] === wanted && present.length === 1))
      await this.#done(['ip', 'addr', 'replace', wanted, 'dev', OVERLAY_DEVICE], options);
    if (link.mtu !== mtu || !link.up) await this.#done(['ip', 'link', 'set', OVERLAY_DEVICE, 'mtu', String(mtu), 'up'], options);
  }

  async #setPeers({ remove, set }: OverlayChanges, options: CallOptions): Promise<readonly PeerFailure[]> {
    for (const keys of chunks(remove)) {
      const words = keys.flatMap((key) => ['peer', key, 'remove']);
      await this.#done(['wg', 'set', OVERLAY_DEVICE, ...words], options);
    }
    const failed: PeerFailure[] = [];
    for (const peers of chunks(set)) {
      const { exitCode } = await this.#run(['wg', 'set', OVERLAY_DEVICE, ...peers.flatMap(peerWords)], options);
      // One of them is refused: each by itself, to know which.
      for (const peer of exitCode === 0 ? [] : peers) {
        const alone = await this.#run(['wg', 'set', OVERLAY_DEVICE, ...peerWords(peer)], options);
        if (alone.exitCode !== 0) failed.push({ publicKey: peer.publicKey, reason: `wg: ${alone.stderr.trim()}` });
      }
    }
    return failed;
  }

  /**
   * wireguard-go answers a peer from the address that it was called at, and goes on with it when the machine has that address no more, which
   * the kernel refuses. An endpoint that is set again, as it is, has no such memory.
   */
  async #forgetSources(options: CallOptions): Promise<void> {
    const shown = parseAddresses((await this.#read(['ip', '-j', '-4', 'addr', 'show'], options)).stdout);
    if (shown === undefined) throw unreadable('ip addr');
    const own = shown.map(formatOverlayAddress).toSorted().join(' ');
    if (own === this.#ownAddresses) return;
    const peers = (await this.#link(options))?.link.peers ?? [];
    for (const some of chunks(peers)) {
      const words = some.flatMap(({ publicKey: key, endpoint }) =>
        endpoint === undefined ? [] : ['peer', key, 'endpoint', formatAddressPort(endpoint.address, endpoint.port)],
      );
      if (words.length > 0) await this.#done(['wg', 'set', OVERLAY_DEVICE, ...words], options);
    }
    this.#ownAddresses = own;
  }

  async #setRoutes({ addRoutes, removeRoutes }: OverlayChanges, options: CallOptions): Promise<void> {
    for (const [verb, ranges] of [
      ['replace', addRoutes],
      ['del', removeRoutes],
    ] as const) {
      for (const range of ranges)
        await this.#done(['ip', '-4', 'route', verb, formatIpv4Range(range), 'dev', OVERLAY_DEVICE, 'proto', PROTOCOL], options);
    }
  }

  async #read(argv: readonly [string, ...string[]], options: CallOptions): Promise<CommandResult> {
    const result = await this.#run(argv, options);
    if (result.exitCode !== 0 || result.dropped > 0) throw unreadable(`${argv.join(' ')}: ${result.stderr.trim()}`);
    return result;
  }

  async #done(argv: readonly [string, ...string[]], options: CallOptions): Promise<void> {
    const { exitCode, stderr } = await this.#run(argv, options);
    if (exitCode !== 0) throw notSet(`${argv.slice(0, 4).join(' ')}: ${stderr.trim() || `exit code ${exitCode}`}`);
  }

  #run(argv: readonly [string, ...string[]], options: CallOptions): Promise<CommandResult> {
    return this.#parts.commands.run({ argv, timeoutMs: CALL_MS, maxOutputBytes: MAX_DUMP_BYTES }, options);
  }
}

function networkOfSelf({ self }: OverlayConfig, { addresses }: ObservedLink): Ipv4Range | undefined {
  const own = self ?? addresses[0];
  return own === undefined ? undefined : networkOf(formatOverlayAddress(own));
}

function peerWords({ publicKey: key, endpoint, ranges }: PeerChange): readonly string[] {
  return [
    ...['peer', key, 'persistent-keepalive', String(KEEPALIVE_S)],
    ...(endpoint === undefined ? [] : ['endpoint', formatAddressPort(endpoint.address, endpoint.port)]),
    ...(ranges === undefined ? [] : ['allowed-ips', ranges.map(formatIpv4Range).join(',')]),
  ];
}

function chunks<T>(all: readonly T[]): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(all.length / PEERS_A_CALL) }, (_, at) =>
    all.slice(at * PEERS_A_CALL, (at + 1) * PEERS_A_CALL),
  );
}

function unreadable(problem: string): AgentError {
  return new AgentError('overlay.unreadable', { problem });
}

function notSet(problem: string): AgentError {
  return new AgentError('overlay.not_set', { problem });
}
