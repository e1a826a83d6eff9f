import { type ServiceError, status } from '@grpc/grpc-js';
import { AgentError, type ErrorCode, errorCodes } from '../../domain/kernel/errors.js';

/** The trailer that names the error's code. */
const CODE = 'holdfast-code';
/** And the one that says what to do. */
const REMEDY = 'holdfast-remedy';

/** Request metadata of a watch: under which name the node stands in resources. */
export const NODE_ID = 'holdfast-node-id';

/** A call that failed, other than by our own abort, as the error that the server threw, or as what has come between. */
export function fromLogError(error: ServiceError): AgentError {
  const code = error.metadata?.get(CODE)[0];
  const failure = (code: ErrorCode, problem: string, remedy?: string) => {
    const facts = { ...(problem === '' ? {} : { problem }), ...(remedy === undefined ? {} : { remedy }) };
    return new AgentError(code, facts, { cause: error });
  };
  const remedy = error.metadata?.get(REMEDY)[0];
  if (typeof code === 'string' && isErrorCode(code))
    return failure(code, error.details, typeof remedy === 'string' ? remedy : undefined);
  switch (error.code) {
    case status.UNAVAILABLE:
    case status.CANCELLED:
    case status.DEADLINE_EXCEEDED:
    case status.UNKNOWN:
      return failure('link.unreachable', `the control plane does not answer: ${plainDetails(error.details)}`);
    case status.RESOURCE_EXHAUSTED:
      return failure('log.too_large', error.details);
    case status.UNIMPLEMENTED:
      return failure('log.not_offered', 'the control plane has no ordered log for agents');
    default:
      return failure('link.refused', error.details);
  }
}

function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(errorCodes, text);
}

/** grpc-js tells how it looked for an address around what happened. */
function plainDetails(details: string): string {
  const found = /^No connection established\. Last error: (?:Error: )?(.*?)\.? Resolution note:/s.exec(details);
  return found?.[1] ?? details;
}
