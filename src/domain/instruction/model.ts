import type { Brand } from '../kernel/brand.js';

/** Correlates an instruction and its reply: 1 to 128 printable characters, made by whoever starts the exchange. */
export type Tag = Brand<string, 'Tag'>;

/** Undefined when `text` is no tag. */
export function tag(text: string): Tag | undefined {
  return text.length <= 128 && /^[\x20-\x7e]+$/.test(text) ? (text as Tag) : undefined;
}

/** What goes back for an instruction. `ERROR` has plain text in `jsonB64`, everything else base64 of JSON. */
export interface Reply {
  readonly type: string;
  readonly jsonB64: string;
}

export const instructionTypes = [
  'SET_VPN_PEERS',
  'GET_NODE_STATUS',
  'GET_CLUSTER_JOIN_CMD',
  'APPLY_OPERATOR',
  'APPLY_CR',
  'DELETE_CR',
  'RUN_KUBECTL_COMMAND',
  'RUN_REMOTE_SCRIPT',
  'INSTALL_HELM_CHART',
  'UNINSTALL_HELM_CHART',
  'RUN_WEB_REQUEST',
  'UNINSTALL_NODE',
  'REINSTALL_NODE',
  'REMOVE_ETCD_MEMBER',
  'UPDATE_DNSMASQ',
  'UPGRADE_NODE_K8S',
  'VIP_ASSIGN',
  'VIP_RELEASE',
  'RESTART_SERVICE',
] as const;
export type InstructionType = (typeof instructionTypes)[number];

/** Which control plane, and its tag: two fleets never share tags (engine.md A13). */
export interface InstructionKey {
  readonly fleet: string;
  readonly tag: Tag;
}

/** One text for each key: no tag holds a line break. */
export function keyText({ fleet, tag }: InstructionKey): string {
  return `${fleet}\n${tag}`;
}

/**
 * What becomes of work that may have begun (engine.md A8): `read` has no effect and is not journalled, `repeat` may run again, since it
 * converges, `probe` asks reality first, `never` runs once.
 */
export type RepeatClass = 'read' | 'repeat' | 'probe' | 'never';

/** Whose slots it takes; none borrows from another (engine.md D2). */
export type SlotClass = 'urgent' | 'read' | 'work' | 'script';

/** What an instruction is answered with, before it is encoded. */
export type Answer =
  | { readonly kind: 'json'; readonly type: string; readonly value: Readonly<Record<string, unknown>> }
  | { readonly kind: 'error'; readonly text: string }
  /** Not answered at all. */
  | { readonly kind: 'none' };

export const NO_CONTENT: Answer = { kind: 'json', type: 'NO_CONTENT', value: {} };

export function errorAnswer(text: string): Answer {
  return { kind: 'error', text };
}
