import type { QualifiedName } from '../resource/model.js';
import { answer } from './answer.js';
import { encodeMessage } from './encode.js';
import { classes, type Message, types } from './model.js';
import { type DomainName, lowerCase, MAX_LABEL_BYTES, MAX_NAME_BYTES, nameBytes } from './name.js';
import type { ReadyAnswer, ReadyGroup, ReadyName, ZoneDelta } from './ready.js';
import type { Zone } from './zone.js';

const HEADER_BYTES = 12;
/** No service has it: theirs have a slash. */
const APEX_GROUP = 'zone';

/** What makes an empty table that of the zone but for its services: these follow by `compileServices`. */
export function compileApexes(zone: Zone): ZoneDelta {
  const apex = { id: APEX_GROUP, names: readyNames(zone, [zone.origin]) };
  return { serial: zone.serial, apexes: zone.apexes(), remove: [], upsert: [apex] };
}

/** What makes the table right where it is about these services, whatever it holds of them. */
export function compileServices(zone: Zone, services: Iterable<QualifiedName>): ZoneDelta {
  const [remove, upsert]: [string[], ReadyGroup[]] = [[], []];
  const take = (id: string, names: readonly DomainName[] | undefined) => {
    if (names === undefined) remove.push(id);
    else upsert.push({ id, names: readyNames(zone, names) });
  };
  const all = new Set(services);
  for (const service of all) take(service, zone.namesOf(service));
  for (const namespace of new Set([...all].map((service) => service.slice(0, service.indexOf('/'))))) {
    const name = zone.nameOfNamespace(namespace);
    take(`${namespace}/`, name && [name]);
  }
  return { serial: zone.serial, remove, upsert };
}

/** Names that nobody can ask for are left out: `_` before a port's name may make it too long for a label. */
function readyNames(zone: Zone, names: readonly DomainName[]): readonly ReadyName[] {
  const possible = names.filter(
    (name) => nameBytes(name) <= MAX_NAME_BYTES && name.every(({ length }) => length <= MAX_LABEL_BYTES),
  );
  return possible.flatMap((name) => readyName(zone, name) ?? []);
}

/** Undefined when the name is not of the zone. */
function readyName(zone: Zone, name: DomainName): ReadyName | undefined {
  const found = zone.find(name, types.ANY);
  if (found.is === 'foreign' || found.is === 'absent') return undefined;
  const records = found.is === 'records' ? found.records : [];
  // SOA records change with each revision: whoever serves the table makes them.
  const present = new Set(records.map(({ type }) => type).filter((type) => type !== types.SOA));
  const lower = lowerCase(name);
  return { name: lower, answers: [...present].map((type) => readyAnswer(zone, lower, type)) };
}

function readyAnswer(zone: Zone, name: DomainName, type: number): ReadyAnswer {
  const { message } = answer(zone, query(name, type));
  if (message === undefined) throw new RangeError('a question of the zone has no answer');
  const { answers, authority, additional } = message;
  const body = encodeMessage(message).slice(HEADER_BYTES + nameBytes(name) + 4);
  return { type, answers: answers.length, authority: authority.length, additional: additional.length, body };
}

function query(name: DomainName, type: number): Message {
  return {
    ...{ id: 0, isResponse: false, opcode: 0, isAuthoritative: false, isTruncated: false, recursionDesired: false },
    ...{ recursionAvailable: false, rcode: 0, questions: [{ name, type, class: classes.IN }] },
    ...{ answers: [], authority: [], additional: [], edns: undefined },
  };
}
