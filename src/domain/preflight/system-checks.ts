import { formatInstant } from '../kernel/instant.js';
import { type Check, ok, problem, unknown, warning } from './model.js';
import { CAPABILITIES, CONTROLLERS, MODULES, PORTS, SYSCTLS } from './wants.js';

/** 2026-01-01, before which no certificate of ours is valid. */
const EARLIEST = 1_767_225_600_000;
const HOSTNAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/;

/** What runs on it, and how it is set up. */
export const systemChecks: readonly Check[] = [
  {
    name: 'root',
    wants: 'the user is root',
    isFatal: true,
    judge: ({ userId }) => {
      if (userId === undefined) return unknown('the user cannot be told');
      return userId === 0 ? ok('uid 0') : problem(`it runs as uid ${userId}`, 'run it with sudo');
    },
  },
  {
    name: 'capabilities',
    wants: Object.keys(CAPABILITIES)
      .map((name) => `\`${name}\``)
      .join(', '),
    judge: ({ capabilities }) => {
      if (capabilities === undefined) return unknown('/proc/self/status cannot be read');
      const missing = Object.entries(CAPABILITIES).flatMap(([name, bit]) => ((capabilities >> bit) & 1n ? [] : [name]));
      if (missing.length === 0) return ok('all are there');
      return problem(
        `missing: ${missing.join(', ')}`,
        'run it as root outside a container, or give the container these capabilities',
      );
    },
  },
  {
    name: 'swap',
    wants: 'no swap is on',
    judge: ({ swaps }) => {
      if (swaps === undefined) return unknown('/proc/swaps cannot be read');
      if (swaps.length === 0) return ok('none');
      return problem(`swap is on: ${swaps.join(', ')}`, 'swapoff --all, and take the lines of type swap out of /etc/fstab');
    },
  },
  {
    name: 'ports',
    wants: '10250 is free, on a control plane 6443, 2379, 2380, 10257 and 10259 too (TCP)',
    judge: ({ listeners }, { role }) => {
      if (listeners === undefined) return unknown('/proc/net/tcp cannot be read');
      const isTaken = (port: number) => listeners.some((other) => other.protocol === 'tcp' && other.port === port);
      const taken = PORTS[role].map(({ port }) => port).filter(isTaken);
      if (taken.length === 0) return ok('all are free');
      const filter = taken.map((port) => `sport = :${port}`).join(' or ');
      return problem(`in use: ${taken.join(', ')}`, `stop what listens: ss --listening --tcp --processes '( ${filter} )'`);
    },
  },
  {
    name: 'modules',
    wants: `the kernel has ${Object.keys(MODULES)
      .map((name) => `\`${name}\``)
      .join(', ')}, loaded or built in`,
    judge: ({ modules }) => {
      const names = Object.keys(MODULES);
      const missing = names.filter((name) => modules?.[name] === false);
      const unclear = names.filter((name) => modules?.[name] === undefined);
      if (missing.length > 0) {
        return problem(
          `not there: ${missing.join(', ')}`,
          `apt-get install --yes linux-image-generic (Debian: linux-image-amd64 or linux-image-arm64), restart, then modprobe --all ${missing.join(' ')}`,
        );
      }
      return unclear.length > 0 ? unknown(`it cannot be told of ${unclear.join(', ')}`) : ok('all are there');
    },
  },
  {
    name: 'cgroup',
    wants: `cgroup v2 with ${CONTROLLERS.map((name) => `\`${name}\``).join(', ')}`,
    judge: ({ cgroup }) => {
      if (cgroup === undefined) return unknown('/sys/fs/cgroup cannot be read');
      if (cgroup === 'v1') return problem('the machine has cgroup v1', 'boot with systemd.unified_cgroup_hierarchy=1');
      const missing = CONTROLLERS.filter((name) => !cgroup.includes(name));
      if (missing.length === 0) return ok('v2');
      return problem(`cgroup v2 lacks ${missing.join(', ')}`, 'take cgroup_disable= out of the kernel command line and restart');
    },
  },
  {
    name: 'sysctls',
    wants: Object.entries(SYSCTLS)
      .map(([name, value]) => `\`${name}=${value}\``)
      .join(', '),
    judge: ({ sysctls }) => {
      const all = Object.entries(SYSCTLS);
      const wrong = all.filter(([name, value]) => sysctls?.[name] !== undefined && sysctls[name] !== value);
      const unread = all.filter(([name]) => sysctls?.[name] === undefined);
      const lines = wrong.map(([name, value]) => `${name}=${value}`).join(' ');
      if (wrong.length > 0)
        return problem(`not so: ${lines}`, `sysctl --write ${lines}, and the same in /etc/sysctl.d/99-holdfast.conf`);
      return unread.length > 0 ? unknown(`cannot be read: ${unread.map(([name]) => name).join(', ')}`) : ok('as they should be');
    },
  },
  {
    name: 'clusters',
    wants: 'no cluster is, or was, on the machine',
    judge: ({ clusters }) => {
      if (clusters === undefined) return unknown('the folders of clusters cannot be looked into');
      if (clusters.length === 0) return ok('none');
      return problem(`a cluster has left ${clusters.join(', ')}`, 'remove it with its own program, for kubeadm: kubeadm reset');
    },
  },
  {
    name: 'hostname',
    wants: 'a name of lower-case DNS labels that is not `localhost`',
    judge: ({ hostname }) => {
      if (hostname === undefined) return unknown('the host name cannot be read');
      const isFit = hostname.length <= 253 && HOSTNAME.test(hostname) && !/^localhost(\.|$)/.test(hostname);
      if (isFit) return ok(hostname);
      return problem(`${JSON.stringify(hostname)} cannot name a node`, 'hostnamectl set-hostname NAME, of a to z, 0 to 9 and -');
    },
  },
  {
    name: 'machine-id',
    wants: 'an id of its own, the same for systemd and D-Bus',
    judge: ({ machineId, dbusMachineId }) => {
      const renew = 'rm --force /etc/machine-id /var/lib/dbus/machine-id && systemd-machine-id-setup, then restart';
      if (machineId === undefined) return unknown('/etc/machine-id cannot be read');
      if (!/^[0-9a-f]{32}$/.test(machineId) || /^0+$/.test(machineId)) return problem('the machine has no id', renew);
      if (dbusMachineId === undefined || dbusMachineId === '' || dbusMachineId === machineId) return ok(machineId);
      return warning('D-Bus has the id of another machine: the disk was copied from it', renew);
    },
  },
  {
    name: 'clock',
    wants: 'the clock is right and follows NTP',
    judge: ({ now, isClockSynchronized }) => {
      const follow = 'timedatectl set-ntp true, and wait a minute';
      if (now < EARLIEST) return problem(`the clock says ${formatInstant(now)}`, follow);
      if (isClockSynchronized === undefined) return unknown('nobody tells whether it follows NTP');
      return isClockSynchronized
        ? ok('it follows NTP')
        : warning('the clock follows nothing: certificates fail when it has drifted', follow);
    },
  },
  {
    name: 'package-lock',
    wants: 'no other program installs packages',
    judge: ({ packageLock }) => {
      if (packageLock === undefined) return unknown('the locks of the package manager cannot be read');
      if (packageLock === '') return ok('nobody does');
      return warning(
        `process ${packageLock} holds the package manager`,
        `wait until it has ended: tail --pid=${packageLock} --follow /dev/null`,
      );
    },
  },
];
