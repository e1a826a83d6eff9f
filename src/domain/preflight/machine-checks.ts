import { osName } from '../certificate/host.js';
import { type Check, ok, problem, unknown, warning } from './model.js';
import { DISK_GIB, GIB, MEMORY_GIB, PROGRAMS } from './wants.js';

/** kubeadm refuses less for a control plane. */
const CONTROL_PLANE_CPUS = 2;
/** A machine of 2 GiB says up to a tenth less: firmware and kernel have taken it. */
const MEMORY_SHARE = 0.9;
const LEAST_INODES_SHARE = 0.05;
/** etcd asks for 10 ms (its hardware guide, "Disks"). */
const FSYNC_MS = 10;
const OPEN_FILES = 65_536;
const SYSTEMS = /^(debian-(1[2-9])|ubuntu-(2[2-9])\.04)$/;
const ARCHITECTURES = ['x64', 'arm64'];

const needed = (gib: number) => `${gib} GiB`;
const gib = (bytes: number) => `${(bytes / GIB).toFixed(1)} GiB`;

/** What the machine is and has. */
export const machineChecks: readonly Check[] = [
  {
    name: 'init',
    wants: 'systemd is process 1',
    judge: ({ init }) => {
      if (init === undefined) return unknown('/proc/1/comm cannot be read');
      if (init === 'systemd') return ok(init);
      return problem(`process 1 is ${init}`, 'use a machine, or a container, that boots with systemd');
    },
  },
  {
    name: 'tools',
    wants: `the programs ${PROGRAMS.map((name) => `\`${name}\``).join(', ')}`,
    judge: ({ programs }) => {
      if (programs === undefined) return unknown('no folder of programs can be read');
      const missing = PROGRAMS.filter((name) => !programs.includes(name));
      if (missing.length === 0) return ok('all are there');
      return problem(
        `missing: ${missing.join(', ')}`,
        'apt-get install --yes iproute2 iptables kmod mount util-linux nftables conntrack',
      );
    },
  },
  {
    name: 'os',
    wants: 'Debian 12 or newer, Ubuntu 22.04 or newer',
    judge: ({ osRelease }) => {
      const name = osName(osRelease ?? '');
      if (name === '') return unknown('there is no os-release');
      return SYSTEMS.test(name) ? ok(name) : warning(`${name} is not tested`, 'use Debian 12 or Ubuntu 22.04, or newer');
    },
  },
  {
    name: 'architecture',
    wants: 'x64 or arm64',
    judge: ({ architecture }) => {
      if (architecture === undefined) return unknown('it cannot be told');
      if (ARCHITECTURES.includes(architecture)) return ok(architecture);
      return problem(`there are no programs for ${architecture}`, 'use a machine of x64 or arm64');
    },
  },
  {
    name: 'cpu',
    wants: '2 CPUs (control plane), 1 (worker)',
    judge: ({ cpus }, { role }) => {
      const least = role === 'control-plane' ? CONTROL_PLANE_CPUS : 1;
      if (cpus === undefined) return unknown('/proc/cpuinfo cannot be read');
      if (cpus >= least) return ok(`${cpus}`);
      return problem(`${cpus} CPU, a control plane needs ${least}`, `give the machine ${least} CPUs, or use it as a worker`);
    },
  },
  {
    name: 'memory',
    wants: '2 GiB (control plane), 1 GiB (worker), less a tenth that the firmware takes',
    judge: ({ memoryBytes }, { role }) => {
      const least = MEMORY_GIB[role];
      if (memoryBytes === undefined) return unknown('/proc/meminfo cannot be read');
      if (memoryBytes >= least * GIB * MEMORY_SHARE) return ok(gib(memoryBytes));
      return problem(`${gib(memoryBytes)}, a ${role} needs ${needed(least)}`, `give the machine ${needed(least)} of memory`);
    },
  },
  {
    name: 'disk',
    wants: '20 GiB free (control plane), 10 GiB (worker), and 5 % of the inodes, on each filesystem that is written to',
    judge: ({ filesystems }, { role }) => {
      const least = DISK_GIB[role];
      if (filesystems === undefined) return unknown('no filesystem could be asked');
      const poor = filesystems.filter(({ freeBytes }) => freeBytes < least * GIB);
      const [bare] = filesystems.filter(({ inodes, freeInodes }) => inodes > 0 && freeInodes < inodes * LEAST_INODES_SHARE);
      if (poor.length > 0) {
        const said = poor.map(({ path, freeBytes }) => `${path} has ${gib(freeBytes)} free`).join(', ');
        return problem(
          `${said}, ${needed(least)} are needed`,
          `free space: du -xh --max-depth=2 ${poor[0]?.path} | sort -h | tail`,
        );
      }
      if (bare !== undefined)
        return problem(`${bare.path} has ${bare.freeInodes} inodes free`, `remove small files below ${bare.path}`);
      return ok(filesystems.map(({ path, freeBytes }) => `${path} ${gib(freeBytes)}`).join(', '));
    },
  },
  {
    name: 'fsync',
    wants: 'a write reaches the disk within 10 ms',
    judge: ({ fsyncMs }) => {
      if (fsyncMs === undefined) return unknown('no file could be written and synchronised in time');
      if (fsyncMs <= FSYNC_MS) return ok(`${fsyncMs.toFixed(1)} ms`);
      return warning(
        `a write takes ${fsyncMs.toFixed(1)} ms to reach the disk: etcd loses its leader when that goes on, and the API stands still`,
        'put /var/lib/etcd and /var/lib/holdfast on an SSD of their own',
      );
    },
  },
  {
    name: 'limits',
    wants: '65536 open files',
    judge: ({ openFiles }) => {
      if (openFiles === undefined) return unknown('/proc/self/limits cannot be read');
      if (openFiles >= OPEN_FILES) return ok(`${openFiles}`);
      return warning(
        `a process may open ${openFiles} files: connections are refused beyond`,
        'set LimitNOFILE=1048576 in the unit of the agent',
      );
    },
  },
];
