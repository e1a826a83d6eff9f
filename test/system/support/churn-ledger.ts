/** Why a connection failed. Only `lost` is a fault of the proxy. */
export type Verdict =
  /** Its service had an endpoint that was alive and in the table for all of the connection's time. */
  | 'lost'
  /** An endpoint of the service died in that time: the connection may have been established to it. */
  | 'cut'
  /** No endpoint was alive all the time, or the service itself came or went. */
  | 'without';

interface EndpointFacts {
  /** Since when it listens; `undefined` from the moment that its death begins. */
  aliveSince: number | undefined;
  /** The end of its last death, later than any time while it is dying. */
  diedUntil: number;
}

interface ServiceFacts {
  /** Since when it is there, its listener bound; `undefined` from the moment that its deletion is asked for. */
  since: number | undefined;
  /** Endpoints of the applied table and of the one being applied, with the time of the confirmation. */
  readonly certain: Map<string, number>;
  /** Endpoints that new connections may have been given, and until when. */
  readonly possible: Map<string, number>;
}

const NEVER = Number.NEGATIVE_INFINITY;
const ALWAYS = Number.POSITIVE_INFINITY;

/**
 * Who was alive and who was in the table, and when. A change counts from the moment that makes the judgement strict: an endpoint is
 * there from the confirmation on, and gone from the moment that its going is asked for.
 */
export class ChurnLedger {
  readonly #endpoints = new Map<string, EndpointFacts>();
  readonly #services = new Map<string, ServiceFacts>();

  endpointLives(address: string, now: number): void {
    const facts = this.#endpoints.get(address);
    this.#endpoints.set(address, { aliveSince: now, diedUntil: facts?.diedUntil ?? NEVER });
  }

  endpointDies(address: string): void {
    this.#endpoints.set(address, { aliveSince: undefined, diedUntil: ALWAYS });
  }

  endpointDied(address: string, now: number): void {
    this.#endpoints.set(address, { aliveSince: undefined, diedUntil: now });
  }

  /** `undefined`: it is to be deleted. */
  serviceChanges(name: string, endpoints: readonly string[] | undefined): void {
    const service = this.#services.get(name) ?? { since: undefined, certain: new Map(), possible: new Map() };
    this.#services.set(name, service);
    if (endpoints === undefined) service.since = undefined;
    for (const address of service.certain.keys()) if (endpoints?.includes(address) !== true) service.certain.delete(address);
    for (const address of endpoints ?? []) service.possible.set(address, ALWAYS);
  }

  serviceChanged(name: string, endpoints: readonly string[] | undefined, now: number): void {
    const service = this.#services.get(name);
    if (service === undefined) return;
    if (endpoints !== undefined) service.since ??= now;
    for (const address of endpoints ?? []) if (!service.certain.has(address)) service.certain.set(address, now);
    for (const [address, until] of service.possible) {
      if (until === ALWAYS && endpoints?.includes(address) !== true) service.possible.set(address, now);
    }
  }

  /** Of a connection that began at `from` and has failed now. */
  judge(name: string, from: number): Verdict {
    const service = this.#services.get(name);
    if (service?.since === undefined || service.since > from) return 'without';
    const throughout = [...service.certain].some(([address, since]) => since <= from && this.#aliveSince(address) <= from);
    if (!throughout) return 'without';
    const died = [...service.possible].some(([address, until]) => until >= from && this.#diedUntil(address) >= from);
    return died ? 'cut' : 'lost';
  }

  #aliveSince(address: string): number {
    return this.#endpoints.get(address)?.aliveSince ?? ALWAYS;
  }

  #diedUntil(address: string): number {
    return this.#endpoints.get(address)?.diedUntil ?? NEVER;
  }
}
