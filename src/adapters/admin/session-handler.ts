import { AgentError } from '../../domain/kernel/errors.js';
import type { SessionTarget } from '../../domain/session/model.js';
import { readSize, readTarget } from '../../domain/session/schema.js';
import type { RemoteSessions, SessionInput } from '../../ports/driving/remote-sessions.js';
import type {
  FleetServiceServer,
  OpenSessionRequest,
  OpenSessionResponse,
  SessionStart,
} from '../generated/holdfast/admin/v1/fleet.js';
import type { Audited } from './audited.js';
import { nidFromWire } from './fleet-mapping.js';
import type { GrpcCalls } from './grpc-calls.js';

/** Who has a session with which service is on record before the node is asked, and its end afterwards. */
export function sessionHandler(
  calls: GrpcCalls,
  { sessions }: { readonly sessions: RemoteSessions },
  audited: Audited,
): FleetServiceServer['openSession'] {
  return calls.duplex<OpenSessionRequest, OpenSessionResponse>(async ({ requests, write }, signal, caller) => {
    const start = await startOf(requests);
    const [node, target] = [nidFromWire(start.node), targetFromWire(start)];
    const service = `${target.namespace}/${target.name}:${target.port}`;
    const record = { caller, type: `admin.open_session ${service}`, tag: node, payload: target.path };
    const terminal = {
      input: inputsOf(requests),
      opened: () => void write({ frame: { $case: 'opened', value: {} } }),
      output: (bytes: Uint8Array) => write({ frame: { $case: 'data', value: Buffer.from(bytes) } }),
    };
    const end = await audited.run(record, { signal }, () => sessions.open(node, target, terminal, { signal }));
    await write({ frame: { $case: 'closed', value: end } });
  });
}

/** @throws AgentError `session.invalid` */
async function startOf(requests: AsyncIterator<OpenSessionRequest>): Promise<SessionStart> {
  const first = await requests.next();
  const frame = first.done === true ? undefined : first.value.frame;
  if (frame?.$case === 'start') return frame.value;
  throw new AgentError('session.invalid', { problem: 'the first message does not say with which service' });
}

/** @throws AgentError `session.invalid` */
function targetFromWire({ namespace, name, port, path, headers, size }: SessionStart): SessionTarget {
  const read = readTarget({ namespace, name, port, path, headers, cols: size?.cols, rows: size?.rows });
  if (read.ok) return read.target;
  throw new AgentError('session.invalid', { problem: read.problem });
}

async function* inputsOf(requests: AsyncIterable<OpenSessionRequest>): AsyncGenerator<SessionInput> {
  for await (const { frame } of requests) {
    if (frame?.$case === 'data') yield { what: 'data', bytes: frame.value };
    const size = frame?.$case === 'size' ? readSize(frame.value) : undefined;
    if (size !== undefined) yield { what: 'size', size };
  }
}
