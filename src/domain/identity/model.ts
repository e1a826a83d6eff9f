import type { Brand } from '../kernel/brand.js';
import { DNS_LABEL } from '../kernel/dns-label.js';

/** A node's name and id: a DNS-1123 label. */
export type NodeName = Brand<string, 'NodeName'>;

/** Labels as in Kubernetes: `[prefix/]name` to a value of at most 63 characters. */
export type Labels = Readonly<Record<string, string>>;

/** Who this node is. Written once and never changed: resources, bindings and localities name it. */
export interface Identity {
  readonly nodeId: NodeName;
  /** The host name when the identity was made. */
  readonly hostname: string;
  readonly labels: Labels;
}

const labelName = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;

export function nodeName(text: string): NodeName | undefined {
  return DNS_LABEL.test(text) ? (text as NodeName) : undefined;
}

export function isLabelKey(text: string): boolean {
  const slash = text.indexOf('/');
  if (slash < 0) return labelName.test(text);
  const prefix = text.slice(0, slash);
  return prefix.length <= 253 && prefix.split('.').every((part) => DNS_LABEL.test(part)) && labelName.test(text.slice(slash + 1));
}

export function isLabelValue(text: string): boolean {
  return text === '' || labelName.test(text);
}
