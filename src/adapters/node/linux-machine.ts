import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type AbsolutePath, under } from '../../domain/kernel/paths.js';

/** What tells this machine, and this run of it, from others. */
export interface MachineFacts {
  /** Boot id of the kernel. */
  readonly boot: string;
  /** Hash of what identifies the hardware: of a machine and its clone the same only if the hardware is. */
  readonly hardware: string;
}

/** Of the product and its disk, as far as they can be read (sysfs-bus-dmi, sysfs-block); addresses of network cards where there are none. */
const HARDWARE = [
  '/sys/class/dmi/id/product_uuid',
  '/sys/class/dmi/id/product_serial',
  '/sys/block/sda/device/wwid',
  '/sys/block/vda/serial',
  '/sys/block/nvme0n1/wwid',
  '/sys/class/net/eth0/address',
  '/sys/class/net/ens3/address',
];

/** @param root prefix of all paths: several agents on one machine are several machines */
export async function readMachine(root: AbsolutePath): Promise<MachineFacts> {
  const read = (path: string) =>
    readFile(under(root, path as AbsolutePath), 'latin1').then(
      (text) => text.trim(),
      () => '',
    );
  const [boot, ...hardware] = await Promise.all([read('/proc/sys/kernel/random/boot_id'), ...HARDWARE.map(read)]);
  // A root of tests has no /proc of its own: the kernel is the same.
  const kernel = boot || (await readFile('/proc/sys/kernel/random/boot_id', 'latin1')).trim();
  return { boot: kernel, hardware: hash('sha256', [root, ...hardware].join('\n'), 'hex') };
}
