import { ipAddress } from '../../domain/kernel/network.js';
import { BACKEND, type RunningBalancer, type RunningServer } from '../../domain/loadbalancer/model.js';

/** Bits of `srv_admin_state` (management.txt 9.3, `show servers state`): forced maintenance, forced drain. */
const MAINT = 0x01;
const DRAIN = 0x08;
/** Bit of `srv_check_state`: the check is on. */
const CHECKED = 0x04;
/** `srv_op_state` of one that gets connections. */
const RUNNING = 2;

/** What HAProxy 2.5 and newer says to `show info`, `show servers state` and `show stat`. Undefined for what is none of it. */
export function readRunning(info: string, states: string, stats: string): RunningBalancer | undefined {
  const facts = new Map(info.split('\n').map((line) => splitOnce(line)));
  const pid = Number(facts.get('Pid'));
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined;
  const sessions = sessionsOf(stats);
  const servers = states.split('\n').flatMap((line) => serverOf(line, sessions) ?? []);
  return { pid, description: facts.get('description') ?? '', servers };
}

function splitOnce(line: string): [string, string] {
  const at = line.indexOf(': ');
  return at < 0 ? [line, ''] : [line.slice(0, at), line.slice(at + 2)];
}

function serverOf(line: string, sessions: ReadonlyMap<string, number>): RunningServer | undefined {
  const fields = line.split(' ');
  const [, backend, , name = '', address = '', operational] = fields;
  const [admin, since, check, host = '', port] = [fields[6], fields[9], fields[13], fields[17], fields[18]];
  if (backend !== BACKEND || port === undefined) return undefined;
  const bits = Number(admin);
  return {
    name,
    address: ipAddress(address),
    port: Number(port),
    host: host === '-' ? '' : host,
    admin: (bits & MAINT) !== 0 ? 'maint' : (bits & DRAIN) !== 0 ? 'drain' : 'ready',
    isChecked: (Number(check) & CHECKED) !== 0,
    isUp: Number(operational) === RUNNING,
    sessions: sessions.get(name) ?? 0,
    changedSeconds: Number(since),
  };
}

/** CSV whose first line, behind `# `, names the columns. */
function sessionsOf(stats: string): ReadonlyMap<string, number> {
  const [header = '', ...lines] = stats.split('\n');
  const columns = header.replace(/^# /, '').split(',');
  const [proxy, server, current] = ['pxname', 'svname', 'scur'].map((name) => columns.indexOf(name));
  const rows = lines.map((line) => line.split(','));
  return new Map(
    rows.flatMap((row) => {
      const name = row[server ?? -1];
      return row[proxy ?? -1] === BACKEND && name !== undefined ? [[name, Number(row[current ?? -1] ?? 0)] as const] : [];
    }),
  );
}
