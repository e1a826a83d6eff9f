import { answer } from '../../domain/dns/answer.js';
import { decodeMessage } from '../../domain/dns/decode.js';
import { encodeMessage } from '../../domain/dns/encode.js';
import { formatRcode, formatType, type Message } from '../../domain/dns/model.js';
import type { DomainName } from '../../domain/dns/name.js';
import { servicesOf, Zone } from '../../domain/dns/zone.js';
import type { IpAddress } from '../../domain/kernel/network.js';
import { ZERO_REVISION } from '../../domain/log/model.js';
import type { DnsCount } from '../../ports/dns/dns-responder.js';
import type { DnsTransport, NameAnswers } from '../../ports/driving/name-answers.js';
import type { StateView } from '../../ports/log/state-view.js';
import type { Subsystem } from '../agent/subsystem.js';

export interface ZoneAnswersParts {
  readonly view: StateView;
  /** `holdfast`: at least one label. */
  readonly origin: DomainName;
  /** Where this node is asked. */
  readonly server?: IpAddress | undefined;
}

/** Types of questions that are counted apart: whoever asks could make as many series as there are numbers. */
const COUNTED: ReadonlySet<string> = new Set(['A', 'AAAA', 'SRV', 'PTR', 'SOA', 'NS', 'TXT', 'ANY', 'none']);

/** Answers for the names of the services that the log holds, as of the moment in which it is asked. */
export class ZoneAnswers implements Subsystem, NameAnswers {
  readonly name = 'dns-zone';
  readonly zone: Zone;
  readonly #view: StateView;
  readonly #counts = new Map<string, DnsCount>();
  #unsubscribe: () => void = () => {};

  constructor({ view, origin, server }: ZoneAnswersParts) {
    this.#view = view;
    this.zone = new Zone({ origin, state: view.state, server });
  }

  async start(): Promise<void> {
    const { state } = this.#view;
    this.#unsubscribe = this.#view.onChange(({ services }) => this.zone.update(services));
    this.zone.update(servicesOf(state));
  }

  async ready(signal: AbortSignal): Promise<void> {
    await this.#view.reached(ZERO_REVISION, { signal });
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
  }

  answer(query: Uint8Array, transport: DnsTransport): Uint8Array | undefined {
    const asked = decodeMessage(query);
    const { message, udpBytes } = answer(this.zone, asked);
    this.#count('problem' in asked ? undefined : asked, message);
    if (message === undefined) return undefined;
    return transport === 'udp' ? encodeMessage(message, udpBytes) : encodeMessage(message);
  }

  /** Since the start. */
  counts(): readonly DnsCount[] {
    return [...this.#counts.values()];
  }

  #count(asked: Message | undefined, answered: Message | undefined): void {
    const [question] = asked?.questions ?? [];
    const known = question === undefined ? 'none' : formatType(question.type);
    const type = COUNTED.has(known) ? known : 'other';
    const rcode = answered === undefined ? 'none' : formatRcode(answered.rcode);
    const key = `${type} ${rcode}`;
    this.#counts.set(key, { type, rcode, count: (this.#counts.get(key)?.count ?? 0) + 1 });
  }
}
