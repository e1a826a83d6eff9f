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
  | { readonly kind: 'chain'; readonly chain: string; readonly type: string; readonly hook: number; readonly priority: number }
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
    }
  | { readonly kind: 'remove'; readonly chain?: string; readonly set?: string };

/** All of it at once, or nothing. */
export type RuleBatch = readonly RuleOperation[];

/** Batches in their order: between two of them traffic sees what the first has made. */
export type RulePlan = readonly RuleBatch[];
