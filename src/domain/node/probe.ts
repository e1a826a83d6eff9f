import type { Disk, Gpu } from './model.js';

/** Filesystems that hold nothing of their own, or the network's. */
const UNREAL = new Set(['tmpfs', 'devtmpfs', 'overlay', 'squashfs', 'ramfs', 'efivarfs', 'nfs', 'nfs4', 'cifs', 'fuse.sshfs']);
/** More are an array, and no use in a record. */
const MOST_DISKS = 64;
const MOST_GPUS = 64;
const MIB = 1024 * 1024;

/** What `df --portability --print-type --block-size=1` prints; a device that is mounted twice is named once. */
export function readDisks(text: string): readonly Disk[] {
  const disks = new Map<string, Disk>();
  for (const line of text.split('\n').slice(1)) {
    const found = /^(\S+)\s+(\S+)\s+(\d+)\s+\d+\s+\d+\s+\S+\s+(\/.*)$/.exec(line);
    const [, device = '', filesystem = '', bytes = '', mount = ''] = found ?? [];
    if (found === null || UNREAL.has(filesystem) || disks.has(device)) continue;
    disks.set(device, { mount, device, filesystem, bytes: Number(bytes) });
  }
  return [...disks.values()].slice(0, MOST_DISKS).sort((a, b) => (a.mount < b.mount ? -1 : 1));
}

/** What `nvidia-smi --query-gpu=uuid,name,memory.total --format=csv,noheader,nounits` prints; undefined when it is something else. */
export function readGpus(text: string): readonly Gpu[] | undefined {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const gpus = lines.map((line) => {
    const [, uuid, model, mebibytes] = /^(GPU-[0-9a-f-]+), (.{1,128}), (\d+)\s*$/.exec(line) ?? [];
    if (uuid === undefined || model === undefined) return undefined;
    return { uuid, model, memoryBytes: Number(mebibytes) * MIB };
  });
  if (gpus.length > MOST_GPUS || !gpus.every((gpu) => gpu !== undefined)) return undefined;
  return gpus.toSorted((a, b) => (a.uuid < b.uuid ? -1 : 1));
}

/** The first version in what a program says of itself: `Kubernetes v1.20.2`, `containerd github.com/… 1.6.20 …`. */
export function readVersion(text: string): string | undefined {
  return /\bv?(\d+\.\d+\.\d+[0-9A-Za-z.+~-]*)/.exec(text)?.[1];
}

/** `PRETTY_NAME` of os-release (os-release(5)); undefined when there is none. */
export function prettyName(text: string): string | undefined {
  return /^PRETTY_NAME=(["']?)(.{1,128})\1$/m.exec(text)?.[2];
}
