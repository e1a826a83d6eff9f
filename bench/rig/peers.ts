import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BACKEND_ADDRESS, LISTEN_ADDRESS } from './network.ts';

export const IPERF_PORT = 5201;
export const ECHO_PORT = 9002;
const IPERF = `${BACKEND_ADDRESS}:${IPERF_PORT}`;
const ECHO = `${BACKEND_ADDRESS}:${ECHO_PORT}`;

const root = join(import.meta.dirname, '../..');
export const tools = join(root, 'build/bench');
export const rigPeer = join(root, 'bench/rig-peer');

/** The ports of the listening address that are one peer's. */
export interface Ports {
  readonly iperf: number;
  /** TCP and UDP. */
  readonly echo: number;
}

export interface Peer {
  readonly name: string;
  /** For people. */
  readonly title: string;
  readonly threads: number;
  readonly ours: boolean;
  readonly protocols: readonly ('tcp' | 'udp')[];
  /** Must be there, or the peer is left out. */
  readonly needs: string;
  /** Stopped after each sample: its rules see the packets of all others. */
  readonly alone?: boolean;
  /** Stays in the foreground; files of its own go to `folder`. Nothing is started for a peer without a command. */
  readonly command?: (ports: Ports, folder: string) => readonly string[];
}

const nginxStream = '/usr/lib/nginx/modules/ngx_stream_module.so';
const both = ['tcp', 'udp'] as const;
const onlyTcp = ['tcp'] as const;
const foreign = { ours: false, protocols: onlyTcp };

export const peers: readonly Peer[] = [
  { name: 'direct', title: 'no proxy', threads: 0, ours: false, protocols: both, needs: '/' },
  ...[1, 2].flatMap((threads): Peer[] => [
    {
      name: `haproxy${threads}`,
      title: `HAProxy, ${counted(threads, 'thread')}`,
      threads,
      ...foreign,
      needs: '/usr/sbin/haproxy',
      command: (ports, folder) => haproxy(ports, folder, threads, false),
    },
    {
      name: `haproxy${threads}-tuned`,
      title: `HAProxy tuned for bulk, ${counted(threads, 'thread')}`,
      threads,
      ...foreign,
      needs: '/usr/sbin/haproxy',
      command: (ports, folder) => haproxy(ports, folder, threads, true),
    },
    {
      name: `nginx${threads}`,
      title: `nginx, ${counted(threads, 'worker')}`,
      threads,
      ours: false,
      protocols: both,
      needs: nginxStream,
      command: (ports, folder) => nginx(ports, folder, threads),
    },
  ]),
  {
    name: 'go',
    title: 'Go, io.Copy',
    threads: 2,
    ours: false,
    protocols: both,
    needs: join(tools, 'go-proxy'),
    command: ({ iperf, echo }) => [
      join(tools, 'go-proxy'),
      `tcp:${LISTEN_ADDRESS}:${iperf}=${IPERF}`,
      `tcp:${LISTEN_ADDRESS}:${echo}=${ECHO}`,
      `udp:${LISTEN_ADDRESS}:${echo}=${ECHO}`,
    ],
  },
  {
    name: 'node-udp',
    title: 'Node, dgram',
    threads: 1,
    ours: false,
    protocols: ['udp'],
    needs: process.execPath,
    command: ({ echo }) => [process.execPath, join(import.meta.dirname, 'node-udp.mjs'), `${LISTEN_ADDRESS}:${echo}=${ECHO}`],
  },
  holdfast('holdfast1', 'Holdfast, 1 thread', 1, '--threads 1'),
  holdfast('holdfast2', 'Holdfast, 2 threads', 2, '--threads 2'),
  holdfast('holdfast1-poll', 'Holdfast, 1 thread, busy poll 100 us', 1, '--threads 1 --busy-poll 100'),
  { ...holdfast('holdfast-kernel', 'Holdfast, rules of the kernel', 0, '--path kernel'), alone: true },
  {
    name: 'nft',
    title: 'nft, written by hand',
    threads: 0,
    ours: false,
    protocols: both,
    needs: '/usr/sbin/nft',
    alone: true,
    command: (ports, folder) => handWritten(ports, folder),
  },
  holdfast('holdfast1-blocked', 'Holdfast, 1 thread, JavaScript blocked 200 of 210 ms', 1, '--threads 1 --blocked'),
];

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

export function holdfast(name: string, title: string, threads: number, flags: string): Peer {
  return commandPeer(name, title, threads, `${rigPeer} ${flags}`);
}

/** A shell command that reads RIG_IP, RIG_..._PORT and RIG_BACKENDS_...: how a peer of one's own is measured. */
export function commandPeer(name: string, title: string, threads: number, command: string): Peer {
  return { name, title, threads, ours: true, protocols: both, needs: '/bin/sh', command: () => ['sh', '-c', `exec ${command}`] };
}

export function environmentOf({ iperf, echo }: Ports): NodeJS.ProcessEnv {
  return {
    RIG_IP: LISTEN_ADDRESS,
    RIG_IPERF_PORT: String(iperf),
    RIG_ECHO_PORT: String(echo),
    RIG_BACKENDS_IPERF: IPERF,
    RIG_BACKENDS_ECHO: ECHO,
  };
}

export function isAvailable({ needs }: Peer): boolean {
  return existsSync(needs);
}

/** Defaults as most run it; tuned: spliced always, through pipes of 1 MiB, which is its best at bulk. */
function haproxy({ iperf, echo }: Ports, folder: string, threads: number, tuned: boolean): readonly string[] {
  const file = join(folder, `haproxy-${iperf}.cfg`);
  const tuning = tuned ? 'tune.bufsize 65536\n  tune.pipesize 1048576' : '';
  const splice = tuned ? 'option splice-request\n  option splice-response' : 'option splice-auto';
  const config = `global
  nbthread ${threads}
  maxconn 9700
  maxpipes 200
  ${tuning}
defaults
  mode tcp
  timeout connect 5s
  timeout client 600s
  timeout server 600s
  ${splice}
listen iperf
  bind ${LISTEN_ADDRESS}:${iperf}
  server backend ${IPERF}
listen echo
  bind ${LISTEN_ADDRESS}:${echo} backlog 16384
  server backend ${ECHO}
`;
  writeFileSync(file, config);
  return ['haproxy', '-db', '-f', file];
}

function nginx({ iperf, echo }: Ports, folder: string, workers: number): readonly string[] {
  const file = join(folder, `nginx-${iperf}.conf`);
  const servers = [
    `listen ${LISTEN_ADDRESS}:${iperf} reuseport backlog=16384; proxy_pass ${IPERF};`,
    `listen ${LISTEN_ADDRESS}:${echo} reuseport backlog=16384; proxy_pass ${ECHO};`,
    `listen ${LISTEN_ADDRESS}:${echo} udp reuseport rcvbuf=4m; proxy_pass ${ECHO};`,
  ];
  const config = `load_module ${nginxStream};
daemon off;
worker_processes ${workers};
pid ${file}.pid;
error_log stderr;
events { worker_connections 19800; multi_accept on; }
stream {
  proxy_buffer_size ${workers === 1 ? '16k' : '64k'};
  proxy_timeout 600s;
  tcp_nodelay on;
${servers.map((server) => `  server { ${server} }\n`).join('')}}
`;
  writeFileSync(file, config);
  return ['nginx', '-e', 'stderr', '-c', file];
}

/** What the kernel can do at best: one rule for each port. It stands until whoever started it is told to stop. */
function handWritten({ iperf, echo }: Ports, folder: string): readonly string[] {
  const table = `rig${iperf}`;
  const file = join(folder, `${table}.nft`);
  const rules = [
    `ip daddr ${LISTEN_ADDRESS} tcp dport ${iperf} dnat to ${IPERF}`,
    `ip daddr ${LISTEN_ADDRESS} tcp dport ${echo} dnat to ${ECHO}`,
    `ip daddr ${LISTEN_ADDRESS} udp dport ${echo} dnat to ${ECHO}`,
  ];
  writeFileSync(
    file,
    `table ip ${table} {
 chain pre { type nat hook prerouting priority dstnat;
${rules.map((rule) => `  ${rule}\n`).join('')} }
}
`,
  );
  const script = `nft -f ${file} && echo 1 >/proc/sys/net/ipv4/ip_forward && trap "nft delete table ip ${table}; exit" TERM INT && while :; do sleep 1; done`;
  return ['sh', '-c', script];
}
