import type { Listener } from './model.js';

/** Lines of /proc/swaps behind its heading: the first column. */
export function readSwaps(text: string): readonly string[] {
  return text
    .split('\n')
    .slice(1)
    .flatMap((line) => /^\S+/.exec(line)?.[0] ?? []);
}

/** States of /proc/net/{tcp,udp}: a TCP socket that listens, a UDP socket that is bound (include/net/tcp_states.h). */
const STATES = { tcp: '0A', udp: '07' } as const;

export function readListeners(protocol: Listener['protocol'], text: string): readonly Listener[] {
  const ports = text.split('\n').flatMap((line) => {
    const [, port, state] = /^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} ([0-9A-F]{2}) /.exec(line) ?? [];
    return port !== undefined && state === STATES[protocol] ? [Number.parseInt(port, 16)] : [];
  });
  return [...new Set(ports)].map((port) => ({ protocol, port }));
}

/** `MemTotal` of /proc/meminfo, which counts in KiB. */
export function readMemory(text: string): number | undefined {
  const kib = /^MemTotal:\s+(\d+) kB$/m.exec(text)?.[1];
  return kib === undefined ? undefined : Number(kib) * 1024;
}

export function readCpus(text: string): number | undefined {
  return text.match(/^processor\s*:/gm)?.length;
}

/** The effective ones of /proc/self/status. */
export function readCapabilities(text: string): bigint | undefined {
  const hex = /^CapEff:\s+([0-9a-f]{1,16})$/m.exec(text)?.[1];
  return hex === undefined ? undefined : BigInt(`0x${hex}`);
}

/** The hard limit of /proc/self/limits: Node raises its own to it. */
export function readOpenFiles(text: string): number | undefined {
  const hard = /^Max open files\s+\S+\s+(\d+|unlimited)/m.exec(text)?.[1];
  return hard === undefined ? undefined : hard === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(hard);
}

/** resolv.conf(5) */
export function readNameservers(text: string): readonly string[] {
  return [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)].map(([, address = '']) => address);
}

/** Whether modules.builtin has it: lines are `kernel/fs/overlayfs/overlay.ko`; `-` and `_` are the same in a module's name. */
export function hasBuiltin(text: string, module: string): boolean {
  return text.split('\n').some((line) => line.split('/').at(-1)?.replace('.ko', '').replaceAll('-', '_') === module);
}
