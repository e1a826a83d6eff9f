import { Metadata, type ServiceError, type StatusObject, status } from '@grpc/grpc-js';
import { AgentError, type ErrorCode, type ErrorKind, errorCodes } from '../../domain/kernel/errors.js';

const CODE = 'holdfast-code';

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

/** What a failed call answers: the code travels in a trailer, the sentence as the details. */
export function toStatus(error: unknown): Partial<StatusObject> {
  if (!(error instanceof AgentError)) {
    return { code: status.INTERNAL, details: error instanceof Error ? error.message : String(error) };
  }
  const metadata = new Metadata();
  metadata.set(CODE, error.code);
  return { code: statusOf[error.kind], details: error.message.slice(error.code.length + 2), metadata };
}

/** A failed call as the error that the other side threw; a daemon that is not there is `admin.unreachable`. */
export function fromServiceError(error: ServiceError, target: string): AgentError {
  const code = error.metadata?.get(CODE)[0];
  if (typeof code === 'string' && isErrorCode(code)) return new AgentError(code, { problem: error.details }, { cause: error });
  if (error.code === status.UNAVAILABLE) {
    return new AgentError('admin.unreachable', { problem: `no daemon answers at ${target}` }, { cause: error });
  }
  return new AgentError('admin.failed', { problem: error.details }, { cause: error });
}

function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(errorCodes, text);
}

export function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' && 'details' in error;
}
