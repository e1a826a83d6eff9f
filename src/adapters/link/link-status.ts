import { Metadata, type StatusObject, status } from '@grpc/grpc-js';
import { AgentError, type ErrorCode } from '../../domain/kernel/errors.js';
import { type Headers, RETRY_HEADER, type ReadHeader, retryMs } from '../../domain/link/headers.js';
import type { StreamEnd } from '../../ports/driving/node-streams.js';
import type { LinkEnd } from '../../ports/link/control-link.js';

const SUPERSEDED = 'SUPERSEDED';
const DUPLICATE = 'DUPLICATE_NODE';

const endStatus: Readonly<Record<StreamEnd['status'], status>> = {
  superseded: status.ABORTED,
  duplicate: status.FAILED_PRECONDITION,
  revoked: status.UNAUTHENTICATED,
  expired: status.UNAUTHENTICATED,
  slow: status.RESOURCE_EXHAUSTED,
  stopping: status.UNAVAILABLE,
  unavailable: status.UNAVAILABLE,
  refused: status.PERMISSION_DENIED,
};
const beginsWith: Partial<Record<StreamEnd['status'], string>> = { superseded: SUPERSEDED, duplicate: DUPLICATE };

/** Agents know two of the reasons by the first word, which is added where the message lacks it. */
export function statusOfEnd({ status: reason, message, retryMs: retry }: StreamEnd): Partial<StatusObject> {
  const word = beginsWith[reason];
  const details = word === undefined || message.startsWith(word) ? message : `${word}: ${message}`;
  const headers: Headers = retry === undefined ? {} : { [RETRY_HEADER]: String(Math.max(0, Math.round(retry))) };
  return { code: endStatus[reason], details: details.slice(0, 8_000), metadata: toMetadata(headers) };
}

/** Why a stream is over, by its status; `died`: with its connection. */
export function linkEnd({ code, details, metadata }: StatusObject, died: boolean): LinkEnd {
  const what = died ? 'connection' : 'stream';
  const error = code === status.OK ? undefined : new AgentError(codeOf(code, details), { problem: details });
  return { what, error, retryMs: retryMs(readerOf(metadata)) };
}

export function codeOf(code: status, details: string): ErrorCode {
  switch (code) {
    case status.UNAUTHENTICATED:
      return 'certificate.refused';
    case status.ABORTED:
      return details.startsWith(SUPERSEDED) ? 'link.superseded' : 'link.refused';
    case status.FAILED_PRECONDITION:
      return details.startsWith(DUPLICATE) ? 'link.duplicate' : 'link.refused';
    case status.UNAVAILABLE:
    case status.CANCELLED:
      return 'link.unreachable';
    case status.UNIMPLEMENTED:
      return 'link.not_offered';
    case status.DEADLINE_EXCEEDED:
      return 'link.timed_out';
    default:
      return 'link.refused';
  }
}

export function toMetadata(headers: Headers): Metadata {
  const metadata = new Metadata();
  for (const [name, text] of Object.entries(headers)) metadata.set(name, text);
  return metadata;
}

/** The first value of each name; binary ones are none of ours. */
export function readerOf(metadata: Metadata): ReadHeader {
  return (name) => {
    const [value] = metadata.get(name);
    return typeof value === 'string' ? value : undefined;
  };
}
