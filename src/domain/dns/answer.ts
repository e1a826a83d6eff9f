import type { Malformed } from './decode.js';
import { classes, type Message, type Question, type Rcode, type ResourceRecord, rcodes, types } from './model.js';
import { type DomainName, nameKey } from './name.js';
import type { Found, Zone } from './zone.js';

/** What we take by UDP: not fragmented on any usual path (DNS flag day 2020). More is sent to nobody by UDP. */
export const UDP_BYTES = 1_232;
const UDP_BYTES_WITHOUT_EDNS = 512;
const OPCODE_QUERY = 0;

export interface Answered {
  /** Undefined: nothing is sent. */
  readonly message: Message | undefined;
  /** What a UDP answer may have. */
  readonly udpBytes: number;
}

const NOTHING: Answered = { message: undefined, udpBytes: 0 };

/** The whole answer to whatever came, for the names of the zone; others are refused. Answers are never answered: two servers would go on for ever. */
export function answer(zone: Zone, query: Message | Malformed): Answered {
  if ('problem' in query) return malformed(query);
  if (query.isResponse) return NOTHING;
  const udpBytes = Math.min(query.edns?.payloadBytes ?? UDP_BYTES_WITHOUT_EDNS, UDP_BYTES);
  const [question, ...others] = query.questions;
  const refusal = refusalOf(query, question, others);
  if (refusal !== undefined || question === undefined)
    return { message: respond(query, { rcode: refusal ?? rcodes.FORMERR }), udpBytes };
  return { message: respond(query, ofZone(zone, question)), udpBytes };
}

/** Its id is all that can be trusted of it. */
function malformed({ header }: Malformed): Answered {
  if (header === undefined || header.isResponse) return NOTHING;
  const { id, opcode } = header;
  const rcode = opcode === OPCODE_QUERY ? rcodes.FORMERR : rcodes.NOTIMP;
  const sections = { questions: [], answers: [], authority: [], additional: [], edns: undefined };
  const flags = { isAuthoritative: false, isTruncated: false, recursionDesired: false, recursionAvailable: false };
  return { message: { id, isResponse: true, opcode, ...flags, rcode, ...sections }, udpBytes: UDP_BYTES_WITHOUT_EDNS };
}

function refusalOf(query: Message, question: Question | undefined, others: readonly Question[]): Rcode | undefined {
  if (query.opcode !== OPCODE_QUERY) return rcodes.NOTIMP;
  if (query.edns !== undefined && query.edns.version > 0) return rcodes.BADVERS;
  // RFC 9619: one question, and a server says so.
  if (question === undefined || others.length > 0 || query.answers.length > 0) return rcodes.FORMERR;
  if (question.class !== classes.IN && question.class !== classes.ANY) return rcodes.REFUSED;
  if (question.type === types.AXFR || question.type === types.IXFR) return rcodes.REFUSED;
  // OPT, and TKEY to MAILA: they are no types of data (RFC 6895, 3.1).
  const isMeta = question.type === types.OPT || (question.type >= 128 && question.type < types.ANY) || question.type === 0;
  return isMeta ? rcodes.FORMERR : undefined;
}

type Sections = Pick<Message, 'rcode'> & Partial<Pick<Message, 'isAuthoritative' | 'answers' | 'authority' | 'additional'>>;

function respond(query: Message, sections: Sections): Message {
  return {
    id: query.id,
    isResponse: true,
    opcode: query.opcode,
    isAuthoritative: false,
    isTruncated: false,
    recursionDesired: query.recursionDesired,
    recursionAvailable: false,
    questions: query.questions.slice(0, 1),
    answers: [],
    authority: [],
    additional: [],
    edns: query.edns && { payloadBytes: UDP_BYTES, version: 0, isDnssecOk: query.edns.isDnssecOk },
    ...sections,
  };
}

function ofZone(zone: Zone, { name, type }: Question): Sections {
  const found = zone.find(name, type);
  switch (found.is) {
    case 'foreign':
      return { rcode: rcodes.REFUSED };
    case 'absent':
      return { rcode: rcodes.NXDOMAIN, isAuthoritative: true, authority: [found.soa] };
    case 'empty':
      return { rcode: rcodes.NOERROR, isAuthoritative: true, authority: [found.soa] };
    case 'records': {
      // ANY is answered with one set of records (RFC 8482, 4.1).
      const records = found.records.filter((each) => each.type === found.records[0]?.type);
      const answers = records.map((record) => ({ ...record, name: caseOf(name, record.name) }));
      return { rcode: rcodes.NOERROR, isAuthoritative: true, answers, additional: targetsOf(zone, records) };
    }
  }
}

/** The owner is written as it was asked for: that keeps its case, and the question's name can be pointed at. */
function caseOf(asked: DomainName, owner: DomainName): DomainName {
  return nameKey(asked) === nameKey(owner) ? asked : owner;
}

/** Addresses of what SRV records lead to (RFC 2782), so that nobody has to ask again. */
function targetsOf(zone: Zone, records: readonly ResourceRecord[]): readonly ResourceRecord[] {
  const targets = new Map<string, DomainName>();
  for (const { type, data } of records) {
    if (type !== types.SRV) continue;
    for (const part of data) if (!(part instanceof Uint8Array)) targets.set(nameKey(part), part);
  }
  return [...targets.values()].flatMap((target) => recordsOf(zone.find(target, types.A)));
}

function recordsOf(found: Found): readonly ResourceRecord[] {
  return found.is === 'records' ? found.records : [];
}
