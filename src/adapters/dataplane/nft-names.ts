import { AgentError } from '../../domain/kernel/errors.js';
import type { NftOperation } from './nft-addon.js';

/** NFPROTO_* of linux/netfilter.h, as nft(8) writes them. */
const families: Readonly<Record<number, string>> = { 1: 'inet', 2: 'ip', 3: 'arp', 5: 'netdev', 7: 'bridge', 10: 'ip6' };

/** NF_INET_*, NF_ARP_* and NF_NETDEV_* of linux/netfilter.h. */
const hooks = ['prerouting', 'input', 'forward', 'output', 'postrouting', 'ingress'];
const arpHooks = ['input', 'output', 'forward'];
const netdevHooks = ['ingress', 'egress'];

/** `inet filter` */
export function tableName(family: number, table: string): string {
  return `${families[family] ?? `family ${family}`} ${table}`;
}

export function hookName(family: number, hook: number): string {
  const names = { 3: arpHooks, 5: netdevHooks }[family] ?? hooks;
  return names[hook] ?? `hook ${hook}`;
}

/** Which object of a plan the kernel has refused, for people; the whole plan where it does not say. */
export function concerning(operations: readonly NftOperation[], error: unknown): string {
  const index = typeof error === 'object' && error !== null && 'operation' in error ? error.operation : undefined;
  const operation = typeof index === 'number' ? operations[index] : undefined;
  return operation === undefined ? `a batch of ${operations.length} operations` : objectOf(operation);
}

function objectOf(operation: NftOperation): string {
  switch (operation.kind) {
    case 'table':
      return `table ${operation.table}`;
    case 'chain':
      return `chain ${operation.chain}`;
    case 'rule':
      return `a rule of chain ${operation.chain}`;
    case 'set':
      return `set ${operation.set}`;
    case 'add-elements':
    case 'delete-elements':
      return `${operation.kind === 'add-elements' ? 'new' : 'former'} elements of set ${operation.set}`;
    case 'counter':
      return `counter ${operation.counter}`;
    case 'flush':
      return 'chain' in operation ? `the rules of chain ${operation.chain}` : `the elements of set ${operation.set}`;
    case 'remove':
      return `the removal of ${removedBy(operation)}`;
  }
}

function removedBy(operation: Extract<NftOperation, { readonly kind: 'remove' }>): string {
  if ('handle' in operation) return `a rule of chain ${operation.chain}`;
  return operation.chain ?? operation.set ?? operation.counter ?? `table ${operation.table}`;
}

/** EPERM alone comes without the capability, and also for a table that another process owns. */
export function filterFailed(what: string, error: unknown): AgentError {
  const problem = `${what}: ${error instanceof Error ? error.message : String(error)}`;
  const denied =
    typeof error === 'object' && error !== null && 'code' in error && (error.code === 'EPERM' || error.code === 'EACCES');
  return new AgentError(denied ? 'dataplane.filter_denied' : 'dataplane.filter_failed', { problem }, { cause: error });
}
