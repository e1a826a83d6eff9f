import { shownTo } from '../../domain/admin/redact.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { revision } from '../../domain/log/model.js';
import type { Explainer } from '../../ports/driving/explainer.js';
import type { Operations } from '../../ports/driving/operations.js';
import type { ReadOptions, Resources } from '../../ports/driving/resources.js';
import type { AdminServiceServer, ApplyRequest, DeleteRequest, GetRequest } from '../generated/holdfast/admin/v1/admin.js';
import type { Audited, AuditedCall } from './audited.js';
import type { GrpcCalls } from './grpc-calls.js';
import {
  applyToWire,
  changeToWire,
  eventToWire,
  explanationToWire,
  refFromWire,
  selectorFromWire,
  statusToWire,
  trafficToWire,
} from './mapping.js';

export interface ResourceParts {
  readonly resources: Resources;
  readonly operations: Operations;
  readonly explainer: Explainer;
}

type Handlers<Name extends keyof AdminServiceServer> = Pick<AdminServiceServer, Name>;

/** @param audited undefined where there is no audit log, on a node that is its own control plane */
export function resourceHandlers(calls: GrpcCalls, parts: ResourceParts, audited: Audited | undefined): AdminServiceServer {
  return { ...changingHandlers(calls, parts, audited), ...readingHandlers(calls, parts), ...operatingHandlers(calls, parts) };
}

function changingHandlers(
  calls: GrpcCalls,
  { resources }: ResourceParts,
  audited: Audited | undefined,
): Handlers<'apply' | 'delete'> {
  const run = <T>(call: AuditedCall, dryRun: boolean, signal: AbortSignal, act: () => Promise<T>) =>
    audited === undefined || dryRun ? act() : audited.run(call, { signal }, act);
  return {
    apply: calls.unary(async (request, signal, caller) => {
      const call = applyCall(request);
      const record = {
        caller,
        type: 'admin.apply',
        tag: request.source,
        payload: request.documents.map(({ json }) => json).join('\n'),
      };
      return applyToWire(await run(record, call.dryRun, signal, () => resources.apply(call, { signal })));
    }),
    delete: calls.unary(async (request, signal, caller) => {
      const call = deleteCall(request);
      const names = call.refs.map(({ kind, namespace, name }) => `${kind}/${namespace}/${name}`).join(' ');
      const record = { caller, type: 'admin.delete', tag: names, payload: names };
      const { revision, deleted } = await run(record, call.dryRun, signal, () => resources.delete(call, { signal }));
      return { revision, deleted: [...deleted] };
    }),
  };
}

function readingHandlers(calls: GrpcCalls, { resources }: ResourceParts): Handlers<'get' | 'watch'> {
  return {
    get: calls.unary(async ({ selector, ...read }, signal, { grade }) => {
      const { revision, objects, ageMs } = await resources.get(selectorFromWire(selector), readOptions(read, signal));
      const objectsJson = objects.map((object) => JSON.stringify(shownTo(grade, object)));
      return { revision, objectsJson, ageMs: BigInt(Math.round(ageMs)) };
    }),
    watch: calls.streaming(async function* ({ selector, ...read }, signal, { grade }) {
      const changes = resources.watch(selectorFromWire(selector), readOptions(read, signal));
      for await (const { object, ...change } of changes) {
        yield changeToWire({ ...change, object: shownTo(grade, object) });
      }
    }),
  };
}

function readOptions({ stale, atLeast }: Pick<GetRequest, 'stale' | 'atLeast'>, signal: AbortSignal): ReadOptions {
  return { signal, stale, ...(atLeast === 0n ? {} : { atLeast: revision(atLeast) }) };
}

function operatingHandlers(
  calls: GrpcCalls,
  { operations, explainer }: ResourceParts,
): Handlers<'status' | 'events' | 'top' | 'explain'> {
  return {
    status: calls.unary(async () => statusToWire(operations.status())),
    events: calls.streaming(async function* ({ follow }, signal) {
      for await (const event of operations.events(follow, { signal })) yield eventToWire(event);
    }),
    top: calls.unary(async ({ namespace }) => {
      const { monotonicMs, listeners } = operations.traffic();
      const services = listeners.map(trafficToWire).filter((service) => namespace === '' || service.namespace === namespace);
      return { monotonicMs: BigInt(Math.round(monotonicMs)), services };
    }),
    explain: calls.unary(async ({ namespace, service, port, from }, signal) =>
      explanationToWire(
        await explainer.explain({ namespace, service, port: port || undefined, from: from || undefined }, { signal }),
      ),
    ),
  };
}

function deleteCall({ refs, dryRun, ignoreNotFound, requestId }: DeleteRequest) {
  return { refs: refs.map(refFromWire), dryRun, ignoreNotFound, requestId: requestId || undefined };
}

/** @throws AgentError `resource.invalid` for a document that is not JSON */
function applyCall({ documents, source, prune, dryRun, requestId }: ApplyRequest) {
  return {
    documents: documents.map(({ file, number, json, path }) => ({ file, number, path, value: parseJson(file, number, json) })),
    source,
    prune,
    dryRun,
    requestId: requestId || undefined,
  };
}

function parseJson(file: string, number: number, json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw new AgentError('resource.invalid', { problem: `${file}: document ${number}: expected JSON` }, { cause: error });
  }
}
