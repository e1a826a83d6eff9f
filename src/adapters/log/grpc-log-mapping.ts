import { AgentError } from '../../domain/kernel/errors.js';
import {
  type Cursor,
  digest,
  logId,
  logKey,
  type Proposal,
  type ProposeResult,
  revision,
  type SnapshotItem,
} from '../../domain/log/model.js';
import * as wire from '../generated/holdfast/log/v1/log.js';

/** @throws AgentError `log.invalid` */
export function cursorFromWire(cursor: wire.Cursor | undefined): Cursor {
  if (cursor === undefined) throw new AgentError('log.invalid', { problem: 'no cursor is given' });
  return valid(() => ({
    logId: logId(cursor.logId),
    revision: revision(cursor.revision),
    digest: digest(cursor.digest),
  }));
}

/** @throws AgentError `log.invalid` */
export function proposalFromWire({ changes, preconditions, requestId }: wire.ProposeRequest): Proposal {
  return valid(() => ({
    changes: changes.map(({ key, value }) => ({ key: logKey(key), value: value ?? null })),
    preconditions: preconditions.map(({ key, revision: at }) => ({ key: logKey(key), revision: revision(at) })),
    ...(requestId === '' ? {} : { requestId }),
  }));
}

export function proposalToWire({ changes, preconditions }: Proposal, requestId: string): wire.ProposeRequest {
  return {
    changes: changes.map(({ key, value }) => (value === null ? { key } : { key, value })),
    preconditions: [...preconditions],
    requestId,
  };
}

export function resultToWire(result: ProposeResult): wire.ProposeResponse {
  const none = { revision: 0n, conflictKey: '', expected: 0n, actual: 0n };
  switch (result.outcome) {
    case 'committed':
      return { ...none, outcome: wire.ProposeResponse_Outcome.COMMITTED, revision: result.revision };
    case 'unchanged':
      return { ...none, outcome: wire.ProposeResponse_Outcome.UNCHANGED, revision: result.revision };
    case 'conflict': {
      const { key, expected, actual } = result;
      return { ...none, outcome: wire.ProposeResponse_Outcome.CONFLICT, conflictKey: key, expected, actual };
    }
  }
}

/** @throws AgentError `log.invalid` */
export function resultFromWire({ outcome, conflictKey, ...response }: wire.ProposeResponse): ProposeResult {
  return valid(() => {
    switch (outcome) {
      case wire.ProposeResponse_Outcome.COMMITTED:
        return { outcome: 'committed', revision: revision(response.revision) };
      case wire.ProposeResponse_Outcome.UNCHANGED:
        return { outcome: 'unchanged', revision: revision(response.revision) };
      case wire.ProposeResponse_Outcome.CONFLICT: {
        const [expected, actual] = [revision(response.expected), revision(response.actual)];
        return { outcome: 'conflict', key: logKey(conflictKey), expected, actual };
      }
      default:
        throw new RangeError(`an outcome that is not known: ${outcome}`);
    }
  });
}

/** @throws AgentError `log.invalid` */
export function itemFromWire({ key, value, revision: at }: wire.SnapshotItem): SnapshotItem {
  return valid(() => ({ key: logKey(key), value, revision: revision(at) }));
}

/** What the digest of a snapshot is taken of. */
export function itemText({ key, value, revision }: SnapshotItem): string {
  return `${key}\n${revision}\n${value}\n`;
}

/** What the other side sent, as what it should be. @throws AgentError `log.invalid` */
export function valid<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new AgentError('log.invalid', { problem: error.message }, { cause: error });
  }
}
