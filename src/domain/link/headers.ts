import {
  type AgentFacts,
  type CallerFacts,
  type Capabilities,
  type Capability,
  epoch,
  isJournalId,
  capabilities as knownCapabilities,
  type ServerFacts,
} from './model.js';

/** Names of gRPC metadata and headers with their text. */
export type Headers = Readonly<Record<string, string>>;
/** The first value of a header. */
export type ReadHeader = (name: string) => string | undefined;

export const RETRY_HEADER = 'holdfast-retry-ms';

/** What a server lets a node have unanswered when it says `window` without a number. */
const USUAL_WINDOW = 32;
/** Longer ones are no plan of anybody's. */
const LONGEST_SPREAD_MS = 3_600_000;
const LONGEST_RETRY_MS = 3_600_000;
const LONGEST_CAPS = 1_024;

const caps = new Set<string>(knownCapabilities);

export function agentHeaders(facts: AgentFacts): Headers {
  return {
    'holdfast-instance': facts.instance,
    'holdfast-session': String(facts.session),
    'holdfast-boot': facts.boot,
    'holdfast-hw': facts.hardware,
    'holdfast-journal': `${facts.journal.id}:${facts.journal.counter}`,
    'holdfast-caps': [...facts.capabilities].join(','),
  };
}

/** Undefined where one is absent or garbled, and so of an older agent. */
export function agentFacts(read: ReadHeader): AgentFacts | undefined {
  const instance = word(read('holdfast-instance'));
  const session = wholeNumber(read('holdfast-session'));
  const boot = word(read('holdfast-boot'));
  const hardware = word(read('holdfast-hw'));
  const journal = /^([^:]*):(\d{1,19})$/.exec(read('holdfast-journal') ?? '');
  if (instance === undefined || session === undefined || boot === undefined || hardware === undefined) return undefined;
  const [, id = '', counter = '0'] = journal ?? [];
  if (!isJournalId(id)) return undefined;
  const { capabilities } = readCaps(read('holdfast-caps'));
  return { instance, session, boot, hardware, journal: { id, counter: BigInt(counter) }, capabilities };
}

export function callerHeaders({ instance, boot, hardware }: CallerFacts): Headers {
  return { 'holdfast-instance': instance, 'holdfast-boot': boot, 'holdfast-hw': hardware };
}

/** Undefined where one is absent or garbled, and so of an older agent. */
export function callerFacts(read: ReadHeader): CallerFacts | undefined {
  const instance = word(read('holdfast-instance'));
  const boot = word(read('holdfast-boot'));
  const hardware = word(read('holdfast-hw'));
  if (instance === undefined || boot === undefined || hardware === undefined) return undefined;
  return { instance, boot, hardware };
}

export function serverHeaders(facts: ServerFacts): Headers {
  const names = [...facts.capabilities].map((name) => (name === 'window' ? `window=${facts.window}` : name));
  return {
    'holdfast-fleet': facts.fleet,
    'holdfast-server': facts.server,
    'holdfast-epoch': String(facts.epoch),
    'holdfast-caps': names.join(','),
    'holdfast-spread-ms': String(Math.round(facts.spreadMs)),
  };
}

/** Undefined where fleet, server or epoch is absent or garbled, and so of an older server. */
export function serverFacts(read: ReadHeader): ServerFacts | undefined {
  const fleet = word(read('holdfast-fleet'));
  const server = word(read('holdfast-server'));
  const number = /^\d{1,19}$/.exec(read('holdfast-epoch') ?? '');
  if (fleet === undefined || server === undefined || number === null) return undefined;
  const { capabilities, window } = readCaps(read('holdfast-caps'));
  const spreadMs = Math.min(LONGEST_SPREAD_MS, wholeNumber(read('holdfast-spread-ms')) ?? 0);
  return { fleet, server, epoch: epoch(BigInt(number[0])), capabilities, spreadMs, window };
}

/** Of a planned stop's trailers, milliseconds. */
export function retryMs(read: ReadHeader): number | undefined {
  const ms = wholeNumber(read(RETRY_HEADER));
  return ms === undefined ? undefined : Math.min(ms, LONGEST_RETRY_MS);
}

/** `journal,window=32`; what is not known is left out. */
function readCaps(text = ''): { readonly capabilities: Capabilities; readonly window: number } {
  const items = text.length > LONGEST_CAPS ? [] : text.split(',').map((item) => item.trim());
  const window = items.map((item) => /^window=([1-9]\d{0,4})$/.exec(item)?.[1]).find((number) => number !== undefined);
  const names = items.map((item) => (item.startsWith('window=') ? 'window' : item)).filter(isCapability);
  return { capabilities: new Set(names), window: window === undefined ? USUAL_WINDOW : Number(window) };
}

function isCapability(name: string): name is Capability {
  return caps.has(name);
}

function word(text: string | undefined): string | undefined {
  return text !== undefined && /^[\x21-\x7e]{1,128}$/.test(text) ? text : undefined;
}

function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
