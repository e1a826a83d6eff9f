import { describe, expect, test } from 'vitest';
import { dropper } from '../../../src/domain/preflight/firewall.js';
import { readIptables } from '../../../src/domain/preflight/read-iptables.js';
import { readNft } from '../../../src/domain/preflight/read-nft.js';

const packet = { protocol: 'tcp', port: 6443 };

describe('iptables', () => {
  test.each<[string, string, string | undefined]>([
    ['nothing', '-P INPUT ACCEPT', undefined],
    ['a policy', '-P INPUT DROP\n-A INPUT -i lo -j ACCEPT', 'iptables filter INPUT: policy drop'],
    ['an exempt port', '-P INPUT DROP\n-A INPUT -p tcp -m tcp --dport 6443 -j ACCEPT', undefined],
    ['exempt ports', '-P INPUT DROP\n-A INPUT -p tcp -m multiport --dports 22,6000:7000 -j ACCEPT', undefined],
    ['another port', '-P INPUT DROP\n-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT', 'iptables filter INPUT: policy drop'],
    ['all but a port', '-P INPUT ACCEPT\n-A INPUT -p tcp -m tcp ! --dport 6443 -j DROP', undefined],
    [
      'established only',
      '-P INPUT DROP\n-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
      'iptables filter INPUT: policy drop',
    ],
    ['perhaps exempt', '-P INPUT DROP\n-A INPUT -s 192.0.2.0/24 -j ACCEPT', undefined],
    ['perhaps dropped', '-P INPUT ACCEPT\n-A INPUT -s 192.0.2.0/24 -j DROP', undefined],
    ['UDP', '-P INPUT ACCEPT\n-A INPUT -p udp -j DROP', undefined],
    [
      'a chain that is called',
      '-P INPUT ACCEPT\n-N own\n-A INPUT -j own\n-A own -j REJECT --reject-with icmp-port-unreachable',
      'iptables filter own: -A own -j REJECT --reject-with icmp-port-unreachable',
    ],
    ['a chain that returns', '-P INPUT ACCEPT\n-N own\n-A INPUT -j own\n-A own -j RETURN\n-A own -j DROP', undefined],
    ['a chain that calls itself', '-P INPUT DROP\n-N own\n-A INPUT -j own\n-A own -j own', undefined],
    ['a chain that is not there', '-P INPUT DROP\n-A INPUT -j gone', undefined],
    [
      'options in a comment',
      '-P INPUT DROP\n-A INPUT -p tcp -m comment --comment "a \\" -j ACCEPT" -j LOG',
      'iptables filter INPUT: policy drop',
    ],
    ['forwarded', '-P INPUT ACCEPT\n-P FORWARD DROP', undefined],
  ])('%s', (_, text, expected) => {
    expect(dropper([readIptables(text)], packet)).toBe(expected);
  });
});

describe('nft', () => {
  const chain = (policy: string, hook = 'input') => ({
    chain: { family: 'inet', table: 'f', name: 'in', handle: 1, type: 'filter', hook, prio: 0, policy },
  });
  const rule = (...expr: readonly object[]) => ({ rule: { family: 'inet', table: 'f', chain: 'in', handle: 7, expr } });
  const match = (left: object, right: unknown, op = '==') => ({ match: { op, left, right } });
  const dport = (right: unknown, protocol = 'tcp') => match({ payload: { protocol, field: 'dport' } }, right);
  const [accept, drop] = [{ accept: null }, { drop: null }];
  const states = (...pairs: readonly (readonly [string, object])[]) => ({
    vmap: { key: { ct: { key: 'state' } }, data: { set: pairs } },
  });

  test.each<[string, readonly object[], string | undefined]>([
    ['a policy', [chain('drop')], 'nft inet f in: policy drop'],
    ['another hook', [chain('drop', 'forward')], undefined],
    ['a port', [chain('accept'), rule(dport(6443), drop)], 'nft inet f in: rule with handle 7'],
    ['a set', [chain('drop'), rule(dport({ set: [22, { range: [6000, 7000] }] }), accept)], undefined],
    ['a named set', [chain('drop'), rule(dport('@open'), accept)], undefined],
    ['UDP', [chain('accept'), rule(dport(6443, 'udp'), drop)], undefined],
    ['loopback', [chain('drop'), rule(match({ meta: { key: 'iifname' } }, 'lo'), accept)], 'nft inet f in: policy drop'],
    ['counted', [chain('accept'), rule({ counter: null }, { reject: null })], 'nft inet f in: rule with handle 7'],
    ['limited', [chain('accept'), rule({ limit: { rate: 5 } }, drop)], undefined],
    ['a map of states', [chain('drop'), rule(states(['established', accept], ['invalid', drop]))], 'nft inet f in: policy drop'],
    ['new ones by a map', [chain('drop'), rule(states(['new', accept]))], undefined],
    ['another map', [chain('drop'), rule({ vmap: { key: { meta: { key: 'mark' } }, data: '@m' } })], undefined],
    ['nonsense', [{ rule: [] }, { chain: 5 }, { rule: { chain: 'x', expr: 'y' } }], undefined],
  ])('%s', (_, nftables, expected) => {
    expect(dropper(readNft(JSON.stringify({ nftables })), packet)).toBe(expected);
  });
});
