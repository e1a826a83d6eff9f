import { AgentError } from '../kernel/errors.js';
import { closest } from '../kernel/suggest.js';
import { KINDS, type Kind } from './model.js';

export type Labels = Readonly<Record<string, string>>;
type Term = (labels: Labels) => boolean;

const ALIASES: Readonly<Record<string, Kind>> = {
  service: 'Service',
  services: 'Service',
  svc: 'Service',
  endpoints: 'Endpoints',
  endpoint: 'Endpoints',
  ep: 'Endpoints',
};

/** A kind as people type it: `svc`, `services`, `Service`. @throws AgentError `resource.invalid` */
export function parseKind(text: string): Kind {
  const kind = Object.hasOwn(ALIASES, text.toLowerCase()) ? ALIASES[text.toLowerCase()] : undefined;
  if (kind !== undefined) return kind;
  const near = closest(text, Object.keys(ALIASES));
  const hint = near === undefined ? `the kinds are ${KINDS.join(', ')}` : `did you mean ${near}?`;
  throw new AgentError('resource.invalid', { problem: `unknown kind ${text}; ${hint}` });
}

/** `a=b`, `a!=b`, `a`, `!a`, joined by commas: all of them must hold. @throws AgentError `resource.invalid` */
export function labelSelector(text: string): Term {
  const terms = text.split(',').map((term) => parseTerm(term.trim(), text));
  return (labels) => terms.every((term) => term(labels));
}

function parseTerm(term: string, whole: string): Term {
  const match = /^(!?)([A-Za-z0-9][A-Za-z0-9._/-]*)(?:(==?|!=)([A-Za-z0-9._-]*))?$/.exec(term);
  const [, not, key, operator, value] = match ?? [];
  if (key === undefined || (not === '!' && operator !== undefined)) {
    throw new AgentError('resource.invalid', {
      problem: `label selector ${JSON.stringify(whole)}: expected terms such as a=b, a!=b, a or !a`,
    });
  }
  const has = (labels: Labels) => Object.hasOwn(labels, key);
  if (operator === undefined) return not === '!' ? (labels) => !has(labels) : has;
  const equal: Term = (labels) => has(labels) && labels[key] === value;
  return operator === '!=' ? (labels) => !equal(labels) : equal;
}
