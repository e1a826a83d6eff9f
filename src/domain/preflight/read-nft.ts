import type { Condition, FirewallChain, FirewallRule, FirewallTable, RuleVerdict } from './firewall.js';

type Json = Readonly<Record<string, unknown>>;

/**
 * `nft --json list ruleset`, libnftables-json(5): tables that packets to this machine come through. Base chains of other hooks are left
 * out. What it does not understand becomes a condition that holds perhaps.
 * @throws SyntaxError when it is no JSON
 */
export function readNft(text: string): readonly FirewallTable[] {
  const read: unknown = JSON.parse(text);
  const objects = list(record(read)?.nftables).map((each) => record(each) ?? {});
  const tables = new Map<string, { chains: Record<string, { rules: FirewallRule[]; base?: FirewallChain['base'] }> }>();
  for (const { chain: given, rule } of objects) {
    const chain = record(given);
    const table = record(rule) ?? chain;
    if (table === undefined || !['ip', 'inet'].includes(String(table.family))) continue;
    const name = `nft ${table.family} ${table.table}`;
    const { chains } = tables.get(name) ?? { chains: {} };
    tables.set(name, { chains });
    if (chain !== undefined) chains[String(chain.name)] = chainOf(chain);
    else chains[String(table.chain)]?.rules.push(ruleOf(table));
  }
  return [...tables].map(([name, { chains }]) => ({ name, chains }));
}

function chainOf({ hook, type, policy }: Json): { rules: FirewallRule[]; base?: FirewallChain['base'] } {
  const isBase = hook === 'input' && type === 'filter';
  return { rules: [], ...(isBase && { base: { policy: policy === 'drop' ? 'drop' : 'accept' } }) };
}

function ruleOf({ expr, handle }: Json): FirewallRule {
  const text = `rule with handle ${String(handle)}`;
  const conditions: Condition[] = [];
  for (const each of list(expr)) {
    const [kind = '', value] = Object.entries(record(each) ?? {})[0] ?? [];
    const verdict = verdictOf(kind, value);
    if (verdict !== undefined) return { text, conditions, verdict };
    if (kind === 'vmap') return { text, ...mapped(conditions, record(value) ?? {}) };
    if (kind === 'match') conditions.push(conditionOf(record(value) ?? {}));
    else if (!SILENT.has(kind)) conditions.push({ kind: 'other' });
  }
  return { text, conditions };
}

/** Statements that let the packet go on. */
const SILENT = new Set(['counter', 'log', 'mangle', 'comment', 'notrack', 'ct helper', 'flow']);

function verdictOf(kind: string, value: unknown): RuleVerdict | undefined {
  if (kind === 'reject') return { kind: 'drop' };
  if (kind === 'accept' || kind === 'drop' || kind === 'return') return { kind };
  const target = record(value)?.target;
  return (kind === 'jump' || kind === 'goto') && typeof target === 'string' ? { kind, chain: target } : undefined;
}

/** A verdict map is understood by the state of a connection; any other ends the packet perhaps. */
function mapped(conditions: readonly Condition[], { key, data }: Json): Omit<FirewallRule, 'text'> {
  const isState = record(record(key)?.ct)?.key === 'state';
  if (!isState) return { conditions: [...conditions, { kind: 'other' }], verdict: { kind: 'accept' } };
  const entry = list(record(data)?.set).find((pair) => list(pair)[0] === 'new');
  const [kind = '', value] = Object.entries(record(list(entry)[1]) ?? {})[0] ?? [];
  return { conditions, verdict: verdictOf(kind, value) };
}

function conditionOf({ op, left, right }: Json): Condition {
  const isNegated = op === '!=';
  if (op !== '==' && op !== 'in' && !isNegated) return { kind: 'other' };
  const { payload, meta, ct } = record(left) ?? {};
  const [field, protocol] = [record(payload)?.field, record(payload)?.protocol];
  const members = membersOf(right);
  if (members === undefined) return { kind: 'other' };
  if (field === 'dport') return portCondition(String(protocol), members, isNegated);
  const names = members.map(String);
  if (record(meta)?.key === 'l4proto' || field === 'protocol') return { kind: 'protocol', names, isNegated };
  if (record(ct)?.key === 'state') return { kind: 'state', names, isNegated };
  if (record(meta)?.key === 'iifname' || record(meta)?.key === 'iif')
    return names.join() === 'lo' && !isNegated ? { kind: 'never' } : { kind: 'other' };
  return { kind: 'other' };
}

function portCondition(protocol: string, members: readonly unknown[], isNegated: boolean): Condition {
  const ranges = members.map((member) => {
    const [from, to] = list(record(member)?.range);
    return [Number(from ?? member), Number(to ?? member)] as const;
  });
  const isUnderstood = (protocol === 'tcp' || protocol === 'th') && ranges.flat().every((port) => Number.isSafeInteger(port));
  // Of another protocol: TCP never meets it.
  if (['udp', 'sctp', 'dccp'].includes(protocol)) return { kind: 'never' };
  return isUnderstood ? { kind: 'port', ranges, isNegated } : { kind: 'other' };
}

/** Of `22`, `["new","related"]` and `{"set":[…]}`; a named set, `"@name"`, is not read. */
function membersOf(right: unknown): readonly unknown[] | undefined {
  if (Array.isArray(right)) return right;
  const set = record(right)?.set;
  if (set !== undefined) return Array.isArray(set) ? set : undefined;
  return typeof right === 'string' && right.startsWith('@') ? undefined : [right];
}

function record(value: unknown): Json | undefined {
  return isRecord(value) ? value : undefined;
}

function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
