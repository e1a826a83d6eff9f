import { instructionTypes } from '../instruction/model.js';
import { formatDuration } from '../kernel/duration.js';
import { AgentError } from '../kernel/errors.js';
import { closest } from '../kernel/suggest.js';
import { ANSWER_MARGIN_MS, ANSWER_MS, MAX_EXPIRY_MS, UPDATE_AGENT } from './model.js';

const SECOND = 1_000;
/** Of a script that names none. */
const SCRIPT_TIMEOUT_S = 15 * 60;
/** The longest that an agent gives anything, an upgrade above all. */
const GREATEST_TIMEOUT_S = 60 * 60;

/** What our own agents take beyond the types of the base protocol. */
const sendable: readonly string[] = [...instructionTypes, UPDATE_AGENT];

export function checkType(type: string): void {
  if (sendable.includes(type)) return;
  const near = closest(type, sendable);
  const hint = near === undefined ? `expected one of ${sendable.join(', ')}` : `did you mean ${near}?`;
  throw new AgentError('dispatch.invalid', { problem: `there is no instruction ${JSON.stringify(type)}; ${hint}` });
}

/** The only type whose payload is a list. */
const LIST: (typeof instructionTypes)[number] = 'RUN_KUBECTL_COMMAND';

/**
 * The keys of what `json` holds, none of a list; an empty text is an empty object, for the types that need nothing said.
 * @throws AgentError `dispatch.invalid`
 */
export function checkPayload(type: string, json: string): Readonly<Record<string, unknown>> {
  const value = parse(json);
  if (type === LIST) {
    if (Array.isArray(value)) return {};
    throw new AgentError('dispatch.invalid', { problem: `the payload of ${type} is a JSON list of arguments: ["get", "nodes"]` });
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Readonly<Record<string, unknown>>;
  throw new AgentError('dispatch.invalid', { problem: `the payload of ${type} is a JSON object` });
}

function parse(json: string): unknown {
  if (json === '') return {};
  if (!json.isWellFormed()) throw new AgentError('dispatch.invalid', { problem: 'the payload is no well-formed text' });
  try {
    return JSON.parse(json);
  } catch (error) {
    const problem = `the payload is no JSON: ${error instanceof Error ? error.message : String(error)}`;
    throw new AgentError('dispatch.invalid', { problem }, { cause: error });
  }
}

/** @throws AgentError `dispatch.invalid` */
export function checkExpiry(ms: number): void {
  if (ms >= SECOND && ms <= MAX_EXPIRY_MS) return;
  throw new AgentError('dispatch.invalid', { problem: `an instruction expires after 1s to ${formatDuration(MAX_EXPIRY_MS)}` });
}

/** How long an agent that keeps no journal may take to answer: 30 s, or its time-out and the way, milliseconds (engine.md A14). */
export function answerMsOf(type: string, { timeoutSeconds }: Readonly<Record<string, unknown>>): number {
  const said = typeof timeoutSeconds === 'number' && timeoutSeconds > 0 ? timeoutSeconds : undefined;
  const seconds = said ?? (type === 'RUN_REMOTE_SCRIPT' ? SCRIPT_TIMEOUT_S : undefined);
  return seconds === undefined ? ANSWER_MS : Math.min(seconds, GREATEST_TIMEOUT_S) * SECOND + ANSWER_MARGIN_MS;
}
