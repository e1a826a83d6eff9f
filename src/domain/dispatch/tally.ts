import { kindOf } from '../instruction/catalogue.js';
import { type InstructionRow, type InstructionState, isFinished, UPDATE_AGENT } from './model.js';

/** `error`: the node answered that it failed. */
export type Ending = 'answered' | 'error' | 'unknown' | 'expired' | 'cancelled';

export interface OpenCount {
  /** `other` for one that this version does not know, so that there are not as many types as anybody likes. */
  readonly type: string;
  readonly state: InstructionState;
  readonly count: number;
}

export interface EndedCount {
  readonly type: string;
  readonly ending: Ending;
  readonly count: number;
}

/** How many instructions are on which way, and how those have ended that were seen to end. */
export class InstructionTally {
  readonly #open = new Map<string, OpenCount>();
  readonly #ended = new Map<string, EndedCount>();

  /** One that was `former` is `row` now; undefined: there is none. */
  note(former: InstructionRow | undefined, row: InstructionRow | undefined): void {
    const wasOpen = former !== undefined && !isFinished(former);
    if (wasOpen) this.#add(former, -1);
    if (row === undefined) return;
    if (!isFinished(row)) this.#add(row, 1);
    else if (wasOpen) this.#end(row);
  }

  open(): readonly OpenCount[] {
    return [...this.#open.values()];
  }

  ended(): readonly EndedCount[] {
    return [...this.#ended.values()];
  }

  #add({ type: named, state }: InstructionRow, change: number): void {
    const type = boundedType(named);
    const key = `${type} ${state}`;
    this.#open.set(key, { type, state, count: (this.#open.get(key)?.count ?? 0) + change });
  }

  #end(row: InstructionRow): void {
    const [type, ending] = [boundedType(row.type), endingOf(row)];
    const key = `${type} ${ending}`;
    this.#ended.set(key, { type, ending, count: (this.#ended.get(key)?.count ?? 0) + 1 });
  }
}

function boundedType(type: string): string {
  return type === UPDATE_AGENT || kindOf(type) !== undefined ? type : 'other';
}

function endingOf({ state, reply }: InstructionRow): Ending {
  if (state === 'unknown' || state === 'expired' || state === 'cancelled') return state;
  return reply?.type === 'ERROR' || reply?.type.endsWith('_ERROR') === true ? 'error' : 'answered';
}
