import { BACKDATED_MS } from '../certificate/validity.js';
import { formatHostPort } from '../kernel/network.js';
import { dropper } from './firewall.js';
import { type Answer, type Check, ok, problem, type RepositoryState, unknown, type Verdict, warning } from './model.js';
import { PORTS } from './wants.js';

/** The Date of HTTP counts in seconds, and an answer is on its way for some. */
const OFFSET_WARNING_MS = 10_000;
const NO_CONTENT = 204;

/** The way out: to the internet, to repositories, and past this machine's own firewall. */
export const egressChecks: readonly Check[] = [
  {
    name: 'egress',
    wants: 'every `--target` answers, whatever it answers',
    judge: ({ answers }, { targets }) => {
      if (targets === undefined || targets.length === 0) return unknown('no --target was given');
      if (answers === undefined) return unknown('the targets could not be asked');
      const silent = answers.flatMap((answer) => ('failed' in answer ? [answer] : []));
      if (silent.length === 0) return ok(answers.map(({ url }) => url).join(', '));
      return problem(
        silent.map(({ url, failed }) => `${url}: ${failed}`).join('; '),
        `let this machine out to it through firewalls and gateways, and try: curl --verbose ${quoted(silent[0]?.url)}`,
      );
    },
  },
  {
    name: 'captive-portal',
    wants: '`--known-answer` answers 204 without content: nothing between answers in its place',
    judge: ({ knownAnswer: answer }, { knownAnswer: url }) => {
      if (url === undefined) return unknown('no --known-answer was given');
      if (answer === undefined) return unknown(`${url} could not be asked`);
      if ('failed' in answer) return unknown(`${url}: ${answer.failed}`);
      if (answer.status === NO_CONTENT && answer.begin === '') return ok(url);
      const instead = answer.location === undefined ? `status ${answer.status}` : `a redirect to ${answer.location}`;
      return problem(
        `${url} answers ${instead}: a portal stands between`,
        `log in there, or have this machine exempted; then this has no output: curl --fail ${quoted(url)}`,
      );
    },
  },
  {
    name: 'clock-offset',
    wants: 'the clock is within 10 s of what `--server`, each `--target` and `--known-answer` say in HTTP',
    judge: ({ answers, knownAnswer, serverClock }) => {
      const all = [serverClock, knownAnswer, ...(answers ?? [])].flatMap((answer) => offsetOf(answer));
      const [least] = all.toSorted((one, other) => Math.abs(one.offsetMs) - Math.abs(other.offsetMs));
      // The nearest stands: one whose own clock is wrong accuses nobody.
      return least === undefined ? unknown('nobody said the time') : judgeOffset(least);
    },
  },
  {
    name: 'apt',
    wants: 'the repositories of apt are signed, and with `--repositories` answer',
    judge: ({ repositories, proxy }, { asksRepositories }) => {
      if (repositories === undefined) return unknown('the sources of apt cannot be read');
      if (repositories.length === 0)
        return warning('apt has no repository: nothing can be installed', 'write them into /etc/apt/sources.list.d/');
      const failed = repositories.filter(({ answer }) => answer !== undefined && refusal(answer) !== undefined);
      // apt goes another way than the request did.
      const hasProxy = Boolean(proxy.http_proxy || proxy.https_proxy || proxy.all_proxy);
      if (failed.length > 0 && !hasProxy)
        return problem(failed.map(sayRepository).join('; '), `mend ${failed[0]?.file}, then: apt-get update`);
      const [trusted] = repositories.filter(({ isTrusted }) => isTrusted);
      if (trusted !== undefined) {
        const said = `${trusted.file} takes ${trusted.uri} ${trusted.suite} without a signature`;
        return warning(said, `replace "trusted" in ${trusted.file} by the repository's key, with signed-by`);
      }
      const unread = repositories.filter(({ answer }) => answer === undefined).length;
      if (asksRepositories !== true) return unknown(`${unread} are named; they are asked with --repositories`);
      if (failed.length > 0 || unread === repositories.length)
        return unknown('apt comes to them through a proxy, or not by HTTP');
      return ok(`${repositories.length - unread} are signed${unread === 0 ? '' : `, ${unread} not asked`}`);
    },
  },
  {
    name: 'udp-egress',
    wants: 'UDP to `--udp-echo` comes back, in one of three attempts',
    judge: ({ udpEcho }, { udpEcho: at }) => {
      if (at === undefined) return unknown('no --udp-echo was given');
      if (udpEcho === undefined) return unknown(`${formatHostPort(at)} could not be asked`);
      if (udpEcho === 'answered') return ok(formatHostPort(at));
      return problem(
        `${formatHostPort(at)}: ${udpEcho.failed}: the overlay would not come through either`,
        `let UDP to ${formatHostPort(at)}, and what comes back, through firewalls`,
      );
    },
  },
  {
    name: 'firewall',
    wants: 'no rule of nftables, iptables or ufw drops connections to the ports of `ports`',
    judge: ({ firewall }, { role }) => {
      if (firewall === undefined) return unknown('neither nft nor iptables could be asked');
      const dropped = PORTS[role].flatMap((packet) => {
        const by = dropper(firewall, packet);
        return by === undefined ? [] : [{ port: packet.port, by }];
      });
      const [first] = dropped;
      if (first === undefined) return ok('none drops them');
      return problem(`${dropped.map(({ port, by }) => `TCP ${port}: ${by}`).join('; ')}`, remedyOf(first));
    },
  },
];

/** For a shell. */
function quoted(url = ''): string {
  return `'${url.replaceAll("'", '%27')}'`;
}

function offsetOf(answer: Answer | undefined): readonly { readonly url: string; readonly offsetMs: number }[] {
  if (answer === undefined || 'failed' in answer || answer.offsetMs === undefined) return [];
  return [{ url: answer.url, offsetMs: answer.offsetMs }];
}

function judgeOffset({ url, offsetMs }: { readonly url: string; readonly offsetMs: number }): Verdict {
  const size = Math.abs(offsetMs);
  const said = `${Math.round(size / 1000)} s ${offsetMs < 0 ? 'behind' : 'ahead of'} ${url}`;
  if (size <= OFFSET_WARNING_MS) return ok(`within ${OFFSET_WARNING_MS / 1000} s of ${url}`);
  const remedy = 'timedatectl set-ntp true, and wait until it says that the clock is synchronized';
  // A clock that is further behind takes a new certificate for one of the future.
  return size <= BACKDATED_MS ? warning(said, remedy) : problem(`${said}: certificates are refused`, remedy);
}

/** Why apt would not take it; undefined when it would. */
function refusal(answer: NonNullable<RepositoryState['answer']>): string | undefined {
  if ('failed' in answer) return answer.failed;
  return answer.isSigned ? undefined : `status ${answer.status}, and nothing signed`;
}

function sayRepository({ uri, suite, answer }: RepositoryState): string {
  return `${uri} ${suite}: ${answer === undefined ? 'not asked' : refusal(answer)}`;
}

function remedyOf({ port, by }: { readonly port: number; readonly by: string }): string {
  if (by.startsWith('ufw')) return `ufw allow ${port}/tcp`;
  if (by.startsWith('iptables')) return `iptables -I INPUT -p tcp --dport ${port} -j ACCEPT`;
  const [, family, table, chain] = /^nft (\S+) (\S+) (\S+):/.exec(by) ?? [];
  return `nft insert rule ${family} ${table} ${chain} tcp dport ${port} accept`;
}
