import { Metadata, type ServiceError, type StatusObject, status } from '@grpc/grpc-js';
import { AgentError, type ErrorCode, type ErrorKind, errorCodes } from '../../domain/kernel/errors.js';

const CODE = 'holdfast-code';
const REMEDY = 'holdfast-remedy';

/** A header block that is larger than 64 KiB ends the call without its message; percent-encoding may take three bytes for one. */
const MAX_DETAILS = 8_000;

const statusOf: Readonly<Record<ErrorKind, status>> = {
  invalid: status.INVALID_ARGUMENT,
  not_found: status.NOT_FOUND,
  conflict: status.ABORTED,
  denied: status.PERMISSION_DENIED,
  unavailable: status.UNAVAILABLE,
  exhausted: status.RESOURCE_EXHAUSTED,
  unimplemented: status.UNIMPLEMENTED,
  internal: status.INTERNAL,
};

/** What a failed call answers: code and remedy travel in trailers, the sentence as the details. */
export function toStatus(error: unknown): Partial<StatusObject> {
  if (!(error instanceof AgentError)) {
    return { code: status.INTERNAL, details: clipped(error instanceof Error ? error.message : String(error)) };
  }
  const metadata = new Metadata();
  metadata.set(CODE, error.code);
  // What else a header takes is not what people write.
  if (/^[\x20-\x7e]*$/.test(error.remedy)) metadata.set(REMEDY, error.remedy);
  return { code: statusOf[error.kind], details: clipped(error.message.slice(error.code.length + 1).trimStart()), metadata };
}

/** A call that failed, other than by our own abort, as the error that the other side threw; without a daemon, `admin.unreachable`. */
export function fromServiceError(error: ServiceError, target: string): AgentError {
  const code = error.metadata?.get(CODE)[0];
  const failure = (code: ErrorCode, problem: string) => new AgentError(code, problem === '' ? {} : { problem }, { cause: error });
  if (typeof code === 'string' && isErrorCode(code))
    return withRemedy(failure(code, error.details), error.metadata.get(REMEDY)[0]);
  switch (error.code) {
    case status.UNAVAILABLE:
      return failure('admin.unreachable', `no daemon answers at ${target}${because(error.details)}`);
    case status.CANCELLED:
      return failure('admin.unreachable', `the daemon at ${target} ended the call`);
    case status.DEADLINE_EXCEEDED:
      return failure('admin.unreachable', `the daemon at ${target} did not answer in time`);
    case status.RESOURCE_EXHAUSTED:
      return failure('admin.too_large', error.details);
    case status.UNIMPLEMENTED:
      return failure('admin.not_offered', `the daemon at ${target} does not offer this`);
    default:
      return failure('admin.failed', error.details);
  }
}

/** Whoever threw it may have known better than its code what to do. */
function withRemedy(error: AgentError, remedy: unknown): AgentError {
  if (typeof remedy !== 'string' || remedy === error.remedy) return error;
  return new AgentError(error.code, { ...error.facts, remedy }, { cause: error.cause });
}

function because(details: string): string {
  if (details.includes('EACCES')) return ': this user may not use the socket';
  return details.includes('ENOENT') ? ': there is no such socket' : '';
}

function clipped(details: string): string {
  return details.length <= MAX_DETAILS ? details : `${details.slice(0, MAX_DETAILS)}…`;
}

function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(errorCodes, text);
}

export function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' && 'details' in error;
}
