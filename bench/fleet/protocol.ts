/** What the bench asks of a process full of agents, and what that answers; one answer a question, of the same number. */
export interface Calls {
  /** One agent a token; a server that holds them back is asked again. */
  readonly register: {
    readonly ask: { readonly server: ServerPlace; readonly tokens: readonly string[]; readonly first: number };
    readonly answer: Registered;
  };
  /** All of them connect, evenly spread over a time. */
  readonly start: { readonly ask: { readonly overMs: number }; readonly answer: object };
  readonly linked: { readonly ask: object; readonly answer: { readonly agents: number } };
  /** When each agent had the revision: it is waited for. Milliseconds of `instant()`. */
  readonly arrivals: {
    readonly ask: { readonly revision: bigint; readonly withinMs: number };
    readonly answer: { readonly at: readonly number[] };
  };
  /** Of the newest heartbeat of each agent. */
  readonly beats: { readonly ask: object; readonly answer: { readonly roundTripsMs: readonly number[] } };
  readonly stop: { readonly ask: object; readonly answer: object };
}

export type CallName = keyof Calls;

export interface ServerPlace {
  readonly host: string;
  readonly registrationPort: number;
  readonly nodesPort: number;
  /** File of the registration root. */
  readonly root: string;
}

export interface Registered {
  readonly callsMs: readonly number[];
  /** Calls that the server refused because too many registered at once. */
  readonly heldBack: number;
}

export interface Question {
  readonly number: number;
  readonly name: CallName;
  readonly ask: unknown;
}

export interface Answer {
  readonly number: number;
  readonly answer?: unknown;
  readonly problem?: string;
}

/** Milliseconds of the kernel's monotonic clock, which all processes of a machine share. */
export function instant(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
