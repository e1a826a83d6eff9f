import type { Algorithm, DataPath } from './model.js';

export const dataPathWishes = ['auto', 'kernel', 'proxy'] as const;
export type DataPathWish = (typeof dataPathWishes)[number];

/** The parts of a service's spec that decide. */
export interface CarriedSpec {
  readonly dataPath?: DataPathWish | undefined;
  readonly balance: { readonly algorithm: Algorithm };
  readonly limits?: unknown;
  readonly proxyProtocol?: unknown;
  readonly idleTimeout?: unknown;
}

/** What only the proxy can do, by the key that asks for it. */
const proxyOnly: readonly { readonly key: string; readonly asked: (spec: CarriedSpec) => boolean }[] = [
  { key: 'balance.algorithm: least-connections', asked: ({ balance }) => balance.algorithm === 'least-connections' },
  { key: 'balance.algorithm: round-robin', asked: ({ balance }) => balance.algorithm === 'round-robin' },
  { key: 'limits', asked: ({ limits }) => limits !== undefined },
  { key: 'proxyProtocol', asked: ({ proxyProtocol }) => proxyProtocol !== undefined },
  { key: 'idleTimeout', asked: ({ idleTimeout }) => idleTimeout !== undefined },
];

/** The keys of a service that rules cannot fulfil; none: the kernel can carry it. */
export function proxyOnlyKeys(spec: CarriedSpec): readonly string[] {
  return proxyOnly.filter(({ asked }) => asked(spec)).map(({ key }) => key);
}

export interface ChosenPath {
  readonly path: DataPath;
  /** In words, after "since". */
  readonly why: string;
}

/** `node`: what this node does with a service that leaves it open. Only `kernel` there can give the kernel. */
export function choosePath(spec: CarriedSpec, node: DataPath): ChosenPath {
  if (spec.dataPath === 'proxy') return { path: 'proxy', why: 'the service says dataPath: proxy' };
  if (node === 'proxy') return { path: 'proxy', why: 'this node carries everything by its proxy' };
  const [key] = proxyOnlyKeys(spec);
  if (key !== undefined) return { path: 'proxy', why: `only the proxy can do ${key}` };
  return { path: 'kernel', why: spec.dataPath === 'kernel' ? 'the service says dataPath: kernel' : 'it asks for nothing else' };
}
