/** A register, a key, a modulus; the name of a set or a chain; bytes that are compared or masked. */
export type RuleValue = number | string | Uint8Array;

/** Its name and its values in the order of the catalogue, native/core/nft_expression.cc. */
export type RuleExpression = readonly [name: string, ...values: RuleValue[]];

/**
 * One step on an object of our table (nf_tables, family inet). `fields` are the lengths of a concatenated key's parts, each padded to 4 bytes;
 * `keyType` and `dataType` the numbers by which nft(8) prints.
 */
export type RuleOperation =
  | { readonly kind: 'chain'; readonly chain: string }
  | {
      readonly kind: 'chain';
      readonly chain: string;
      readonly type: string;
      readonly hook: number;
      readonly priority: number;
      /** Of an ingress hook (5): whose packets it sees. Before Linux 6.16 the chain needs the device, and goes with it. */
      readonly device?: string;
    }
  | { readonly kind: 'rule'; readonly chain: string; readonly expressions: readonly RuleExpression[] }
  | {
      readonly kind: 'set';
      readonly set: string;
      readonly flags?: number;
      readonly keyType: number;
      readonly fields: readonly number[];
      readonly dataType?: number;
      readonly dataBytes?: number;
      readonly size?: number;
      readonly timeoutMs?: number;
    }
  | {
      readonly kind: 'add-elements' | 'delete-elements';
      readonly set: string;
      readonly keyBytes: number;
      readonly dataBytes?: number;
      /** Key, data, key, data …, or keys alone. */
      readonly packed: Uint8Array;
      /** Of a verdict map: where each key goes to. */
      readonly chains?: readonly string[];
      /** How it goes there; `goto` when left out. */
      readonly verdict?: 'goto' | 'jump';
      /** What each element lives, of a set with time-outs. */
      readonly timeoutMs?: number;
    }
  /** A named counter, which keeps what it has counted while rules come and go; once more changes nothing. Rules count by `['object', 1, NAME]`. */
  | { readonly kind: 'counter'; readonly counter: string }
  /** All rules of the chain or all elements of the set, which stay themselves. */
  | { readonly kind: 'flush'; readonly chain: string }
  | { readonly kind: 'flush'; readonly set: string }
  /** With `handle` one rule of the chain. */
  | { readonly kind: 'remove'; readonly chain: string; readonly handle: number }
  | { readonly kind: 'remove'; readonly chain?: string; readonly set?: string; readonly counter?: string };

/** All of it at once, or nothing. */
export type RuleBatch = readonly RuleOperation[];

/** Batches in their order: between two of them traffic sees what the first has made. */
export type RulePlan = readonly RuleBatch[];
