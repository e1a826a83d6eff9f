import { type AbsolutePath, type Paths, under } from '../kernel/paths.js';
import type { Argv, Removal, RemovalAct } from './model.js';

const UNIT = 'holdfast-agent.service';
/** Drains connections for 60 s before it ends. */
const STOP_MS = 90_000;
const CALL_MS = 20_000;
/** Whether systemd runs, and knows the unit. */
const KNOWN: Argv = ['systemctl', 'cat', '--', UNIT];

function systemctl(args: readonly string[], what: string, timeoutMs = CALL_MS): RemovalAct & { readonly what: string } {
  return { do: 'run', argv: ['systemctl', ...args], onlyIf: KNOWN, timeoutMs, what };
}

/** First of all, or it makes again what is removed. It starts with the machine until the end: whoever starts it then goes on. */
export const agentRemoval: Removal = {
  capability: 'agent',
  steps: () => [
    systemctl(['stop', '--', UNIT], `stops ${UNIT}`, STOP_MS),
    { do: 'hold_data_dir', what: 'waits until no daemon uses the data directory' },
  ],
};

/** Last of all: what else is known by. */
export const stateRemoval: Removal = {
  capability: 'state',
  steps: ({ paths, root }, scope) =>
    scope === 'cleanup'
      ? []
      : [
          systemctl(['disable', '--', UNIT], `keeps ${UNIT} from starting with the machine`),
          {
            do: 'remove_file',
            path: under(root, `/etc/systemd/system/${UNIT}` as AbsolutePath),
            what: `the unit ${UNIT}`,
          },
          {
            do: 'run',
            argv: ['systemctl', 'daemon-reload'],
            onlyIf: ['test', '-d', '/run/systemd/system'],
            timeoutMs: CALL_MS,
            what: 'makes systemd forget the unit',
          },
          {
            do: 'remove_state',
            folder: paths.dataDir,
            names: stateNames(paths),
            what: `certificates, identity and the rest of the state in ${paths.dataDir}`,
          },
        ],
};

/** Names in the data directory: the identity and the lock go last, so that a half removed node is known as one. */
function stateNames(paths: Paths): readonly string[] {
  const { certs, enrolment, registrationRoot, adoption, overlayKey, dnsmasqMemory, listenPorts, sysctls } = paths;
  const { adminDir, viewDb, run, apiServers, journalDb, sealingKey, auditLog, identity, lock } = paths;
  const own = [
    adminDir,
    viewDb,
    run,
    journalDb,
    sealingKey,
    overlayKey,
    dnsmasqMemory,
    apiServers,
    listenPorts,
    sysctls,
    adoption,
  ];
  const node = [certs, enrolment, registrationRoot, auditLog, identity, lock];
  return [...own, ...node].map((path) => path.slice(paths.dataDir.length + 1));
}
