/** What a rule asks of a packet; `other` is a condition that is not understood here, which holds perhaps. */
export type Condition =
  | { readonly kind: 'protocol'; readonly names: readonly string[]; readonly isNegated: boolean }
  | { readonly kind: 'port'; readonly ranges: readonly (readonly [number, number])[]; readonly isNegated: boolean }
  | { readonly kind: 'state'; readonly names: readonly string[]; readonly isNegated: boolean }
  /** Of an interface that traffic from elsewhere does not come by. */
  | { readonly kind: 'never' }
  | { readonly kind: 'other' };

export type RuleVerdict =
  | { readonly kind: 'accept' | 'drop' | 'return' }
  | { readonly kind: 'jump' | 'goto'; readonly chain: string };

export interface FirewallRule {
  /** As its program shows it. */
  readonly text: string;
  readonly conditions: readonly Condition[];
  /** Undefined: it only counts, logs or marks. */
  readonly verdict?: RuleVerdict | undefined;
}

export interface FirewallChain {
  readonly rules: readonly FirewallRule[];
  /** Of a chain that the kernel calls for packets to this machine. */
  readonly base?: { readonly policy: 'accept' | 'drop' } | undefined;
}

/** A table of nftables, or the filter table of iptables; ufw writes the latter. */
export interface FirewallTable {
  /** `nft inet filter`, `iptables filter` */
  readonly name: string;
  readonly chains: Readonly<Record<string, FirewallChain>>;
}

export interface NewConnection {
  readonly protocol: string;
  readonly port: number;
}

/** What ends a packet: a rule or a policy, as people find it again. */
export type Fate = { readonly kind: 'accept' | 'unclear' | 'end' | 'return' } | { readonly kind: 'drop'; readonly by: string };

/** Chains cannot loop in the kernel; what is read may. */
const MAX_DEPTH = 16;

/** By what the first packet of a connection to this machine would be dropped; undefined: by nothing, or it cannot be told. */
export function dropper(tables: readonly FirewallTable[], packet: NewConnection): string | undefined {
  for (const table of tables) {
    for (const [name, chain] of Object.entries(table.chains)) {
      if (chain.base === undefined) continue;
      const fate = follow(table, name, packet, 0);
      if (fate.kind === 'drop') return fate.by;
      const isLeftToPolicy = fate.kind === 'end' || fate.kind === 'return';
      if (isLeftToPolicy && chain.base.policy === 'drop') return `${table.name} ${name}: policy drop`;
    }
  }
  return undefined;
}

function follow(table: FirewallTable, name: string, packet: NewConnection, depth: number): Fate {
  const chain = table.chains[name];
  if (chain === undefined || depth > MAX_DEPTH) return { kind: 'unclear' };
  for (const { conditions, verdict, text } of chain.rules) {
    const match = matches(conditions, packet);
    if (match === 'no' || verdict === undefined) continue;
    const fate = take(table, `${table.name} ${name}: ${text}`, verdict, packet, depth);
    if (fate.kind === 'end') continue;
    // A rule that holds perhaps and would end it otherwise than what follows: nobody is accused.
    if (match === 'perhaps') {
      if (fate.kind === 'drop') continue;
      return { kind: 'unclear' };
    }
    return fate;
  }
  return { kind: 'end' };
}

function take(table: FirewallTable, by: string, verdict: RuleVerdict, packet: NewConnection, depth: number): Fate {
  switch (verdict.kind) {
    case 'accept':
    case 'return':
      return { kind: verdict.kind };
    case 'drop':
      return { kind: 'drop', by };
    case 'jump': {
      const fate = follow(table, verdict.chain, packet, depth + 1);
      return fate.kind === 'return' ? { kind: 'end' } : fate;
    }
    case 'goto': {
      const fate = follow(table, verdict.chain, packet, depth + 1);
      return fate.kind === 'end' ? { kind: 'return' } : fate;
    }
  }
}

function matches(conditions: readonly Condition[], packet: NewConnection): 'yes' | 'no' | 'perhaps' {
  const each = conditions.map((condition) => holds(condition, packet));
  if (each.includes(false)) return 'no';
  return each.includes(undefined) ? 'perhaps' : 'yes';
}

function holds(condition: Condition, { protocol, port }: NewConnection): boolean | undefined {
  switch (condition.kind) {
    case 'protocol':
      return condition.names.includes(protocol) !== condition.isNegated;
    case 'port':
      return condition.ranges.some(([from, to]) => from <= port && port <= to) !== condition.isNegated;
    case 'state':
      return condition.names.includes('new') !== condition.isNegated;
    case 'never':
      return false;
    case 'other':
      return undefined;
  }
}
