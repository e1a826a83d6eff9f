import type { z } from 'zod';
import type { ParseYaml } from '../../kubernetes/documents.js';
import { type Answer, errorAnswer, type InstructionType, type RepeatClass, type SlotClass } from '../model.js';
import type { Plan } from '../plan.js';
import type { PolicySubject } from '../policy.js';

const KIB = 1024;
/** Of the decoded payload, checked before it is decoded (engine.md I4). */
export const USUAL_PAYLOAD_BYTES = 256 * KIB;
export const LARGE_PAYLOAD_BYTES = 4 * 1024 * KIB;

/** How an instruction is queued, and for how long it may run. */
export interface Scheduling {
  /** It starts when it is first in each of them; a key that ends in `*` is a whole family. */
  readonly lanes: readonly string[];
  readonly slot: SlotClass;
  /** Undefined: it has none, as it does not end in this process. */
  readonly deadlineMs: number | undefined;
  readonly repeat: RepeatClass;
  /** It is a whole set: one that waits gives way to a newer one of its lanes, and is answered with its result (engine.md D1). */
  readonly newestOnly?: boolean | undefined;
}

/** An instruction whose payload was understood. */
export interface Work extends Scheduling {
  readonly plan: Plan;
  /** What the node's policy may name beside the type. */
  readonly subject?: PolicySubject | undefined;
  /** How long an older server waits for the answer, and therefore how long it may wait in a queue; milliseconds. */
  readonly waiterMs: number;
}

/** What reading a payload takes that the domain does not have itself. */
export interface Reading {
  readonly yaml: ParseYaml;
}

export type ReadWork = { readonly work: Work } | { readonly problem: string };

/** One row of the catalogue. */
export interface Kind {
  readonly type: InstructionType;
  readonly maxPayloadBytes: number;
  /** Whether an empty payload is one. */
  readonly mayBeEmpty: boolean;
  /** Whether payload and reply may hold secrets: they are sealed in the journal, and kept no longer than they must. */
  readonly secret: boolean;
  /** That of the widest instruction of its type. */
  readonly scheduling: Scheduling;
  /** What a failure is answered with, also one to journal it. */
  failure(text: string): Answer;
  /**
   * Its reply is of no use later than this after its receipt, or on another stream: it is sent once or not at all, milliseconds (engine.md A8).
   */
  readonly replyWithinMs?: number | undefined;
  /** It is carried out also where it cannot be journalled (engine.md K). */
  readonly evenUnjournalled?: boolean | undefined;
  /** Of the decoded payload. Undefined: this version does not have it yet. */
  readonly read: ((json: unknown, reading: Reading) => ReadWork) | undefined;
}

/** An older server's waiter lives 30 s (engine.md A11): what waits for 25 s in a queue is too late. */
const QUEUE_MS = 25_000;

interface Problem {
  readonly problem: string;
}

interface Built<Schema extends z.ZodType> {
  readonly type: InstructionType;
  readonly schema: Schema;
  readonly scheduling: Scheduling;
  readonly mayBeEmpty?: boolean;
  readonly maxPayloadBytes?: number;
  readonly secret?: boolean;
  readonly failure?: Kind['failure'];
  readonly replyWithinMs?: number;
  readonly evenUnjournalled?: boolean;
  /** What differs for this payload, or what is wrong with it. */
  readonly work: (payload: z.output<Schema>, reading: Reading) => ({ readonly plan: Plan } & Partial<Work>) | Problem;
}

export function built<Schema extends z.ZodType>(kind: Built<Schema>): Kind {
  const { type, schema, scheduling, mayBeEmpty = false, maxPayloadBytes = USUAL_PAYLOAD_BYTES, secret = false, work } = kind;
  const { failure = errorAnswer, replyWithinMs, evenUnjournalled } = kind;
  return {
    ...{ type, scheduling, mayBeEmpty, maxPayloadBytes, secret, failure, replyWithinMs, evenUnjournalled },
    read(json, reading) {
      const parsed = schema.safeParse(json);
      if (!parsed.success) return { problem: problemText(parsed.error) };
      const read = work(parsed.data, reading);
      return 'problem' in read ? read : { work: { ...scheduling, waiterMs: QUEUE_MS, ...read } };
    },
  };
}

type Unbuilt = Pick<Kind, 'type' | 'scheduling'> & Partial<Kind>;

/** A type that this agent knows and does not have yet. */
export function unbuilt(kind: Unbuilt): Kind {
  return {
    ...{ mayBeEmpty: false, maxPayloadBytes: USUAL_PAYLOAD_BYTES, secret: false, failure: errorAnswer, read: undefined },
    ...kind,
  };
}

/** The first few places that are wrong, as one line. */
function problemText(error: z.ZodError): string {
  const lines = error.issues.slice(0, 3).map(({ path, message }) => `${path.join('.') || 'payload'}: ${message}`);
  return lines.join('; ');
}
