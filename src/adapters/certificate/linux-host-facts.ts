import { networkInterfaces } from 'node:os';
import type { HostNetwork } from '../../domain/certificate/host.js';
import { numberToIpv4 } from '../../domain/kernel/network.js';
import { type AbsolutePath, absolutePath, under } from '../../domain/kernel/paths.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { HostFacts } from '../../ports/node/host-facts.js';
import { readTextFile } from '../files/text-file.js';

const MAX_BYTES = 1024 * 1024;

/** The files of a Linux machine below `root`; addresses and routes are those of the network namespace that it runs in. */
export class LinuxHostFacts implements HostFacts {
  readonly #root: AbsolutePath;

  constructor(root: AbsolutePath) {
    this.#root = root;
  }

  async machineId(options: CallOptions): Promise<string | undefined> {
    for (const path of ['/etc/machine-id', '/var/lib/dbus/machine-id']) {
      const text = (await this.#read(path, options)).trim();
      // systemd writes "uninitialized" into images that have not been started yet.
      if (text !== '' && text !== 'uninitialized') return text;
    }
    return undefined;
  }

  async osRelease(options: CallOptions): Promise<string> {
    return (await this.#read('/etc/os-release', options)) || (await this.#read('/usr/lib/os-release', options));
  }

  async networks(options: CallOptions): Promise<readonly HostNetwork[]> {
    const routes = await readTextFile('/proc/net/route', MAX_BYTES, options);
    return [...addresses(), ...(routes.found === 'text' ? parseRoutes(routes.text) : [])];
  }

  async #read(path: string, options: CallOptions): Promise<string> {
    const file = await readTextFile(under(this.#root, absolutePath(path) ?? this.#root), MAX_BYTES, options);
    return file.found === 'text' ? file.text : '';
  }
}

function addresses(): readonly HostNetwork[] {
  return Object.entries(networkInterfaces()).flatMap(([device, entries = []]) =>
    entries.flatMap(({ cidr, family, address }) => {
      const prefixLength = Number(cidr?.split('/')[1]);
      return family === 'IPv4' && Number.isInteger(prefixLength) ? [{ device, address, prefixLength }] : [];
    }),
  );
}

/** Columns of /proc/net/route: Iface, Destination, Gateway, Flags, RefCnt, Use, Metric, Mask …; addresses as the host's own 32-bit number in hex. */
export function parseRoutes(text: string): readonly HostNetwork[] {
  return text.split('\n').flatMap((line) => {
    const columns = line.trim().split(/\s+/);
    const [device = '', destination = '', mask = ''] = [columns[0], columns[1], columns[7]];
    if (!/^[0-9A-F]{8}$/i.test(destination) || !/^[0-9A-F]{8}$/i.test(mask)) return [];
    const bits = swapped(mask).toString(2).replaceAll('0', '').length;
    return [{ device, address: numberToIpv4(swapped(destination)), prefixLength: bits }];
  });
}

/** Both of our machines, x64 and arm64, write the lowest byte first. */
function swapped(hex: string): number {
  return Buffer.from(hex, 'hex').readUInt32LE();
}
