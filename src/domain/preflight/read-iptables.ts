import type { Condition, FirewallChain, FirewallRule, FirewallTable, RuleVerdict } from './firewall.js';

/** A comment stands in quotes, and may have options in it. */
const WORD = /"(?:[^"\\]|\\.)*"|\S+/g;

/** `iptables -S` of the filter table, iptables(8); ufw's chains are among them. */
export function readIptables(text: string): FirewallTable {
  const chains: Record<string, { rules: FirewallRule[]; base?: FirewallChain['base'] }> = {};
  for (const line of text.split('\n')) {
    const [option, chain, ...words] = line.match(WORD) ?? [];
    if (chain === undefined) continue;
    if (option === '-P' && chain === 'INPUT')
      chains[chain] = { rules: [], base: { policy: words[0] === 'DROP' ? 'drop' : 'accept' } };
    else if (option === '-P' || option === '-N') chains[chain] = { rules: [] };
    else if (option === '-A') chains[chain]?.rules.push({ text: line.trim(), ...ruleOf(words) });
  }
  return { name: chains['ufw-user-input'] === undefined ? 'iptables filter' : 'ufw filter', chains };
}

/** Options that say only how others are read, or what is noted beside. */
const SILENT = new Set(['-m', '--comment', '--reject-with']);

function ruleOf(words: readonly string[]): Omit<FirewallRule, 'text'> {
  const conditions: Condition[] = [];
  let verdict: RuleVerdict | undefined;
  let isNegated = false;
  for (let at = 0; at < words.length; at++) {
    const [word = '', value = ''] = words.slice(at, at + 2);
    if (word === '!') {
      isNegated = true;
      continue;
    }
    if (word === '-j') verdict = target(value);
    else if (word === '-g') verdict = { kind: 'goto', chain: value };
    else if (word.startsWith('-') && !SILENT.has(word)) conditions.push(conditionOf(word, value, isNegated));
    isNegated = false;
  }
  return { conditions, verdict };
}

function target(name: string): RuleVerdict | undefined {
  switch (name) {
    case 'ACCEPT':
      return { kind: 'accept' };
    case 'DROP':
    case 'REJECT':
      return { kind: 'drop' };
    case 'RETURN':
      return { kind: 'return' };
    case 'LOG':
    case 'NFLOG':
    case 'MARK':
    case 'CONNMARK':
      return undefined;
    default:
      return { kind: 'jump', chain: name };
  }
}

function conditionOf(option: string, value: string, isNegated: boolean): Condition {
  switch (option) {
    case '-p':
      return { kind: 'protocol', names: [value], isNegated };
    case '--dport':
    case '--dports':
      return { kind: 'port', ranges: value.split(',').map(portRange), isNegated };
    case '--ctstate':
    case '--state':
      return { kind: 'state', names: value.toLowerCase().split(','), isNegated };
    case '-i':
      return value === 'lo' && !isNegated ? { kind: 'never' } : { kind: 'other' };
    default:
      return { kind: 'other' };
  }
}

function portRange(text: string): readonly [number, number] {
  const [from = '', to = from] = text.split(':');
  return [Number(from || 0), Number(to || 65_535)];
}
