import { describe, expect, test } from 'vitest';
import { Action, ChangeType } from '../../../src/adapters/generated/holdfast/admin/v1/admin.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import type { Resources } from '../../../src/ports/driving/resources.js';
import { adminRig } from '../../support/admin-rig.js';
import { ref, serviceDocument, take } from '../../support/resource-rig.js';

const options = { signal: new AbortController().signal };

const request = (...values: readonly unknown[]) => ({
  documents: values.map((value, index) => ({ file: 'a.yaml', number: index + 1, path: '', json: JSON.stringify(value) })),
  source: 'test',
  prune: false,
  dryRun: false,
  requestId: '',
});
const everything = { kind: '', namespace: '', name: '', labels: '' };

async function serving(parts: Parameters<typeof adminRig>[0] = {}) {
  const rig = await adminRig(parts);
  await rig.server.start();
  return { ...rig, api: rig.client() };
}

/** Use cases that all do the same. */
function resourcesThat(act: (signal: AbortSignal) => Promise<never>): Resources {
  return {
    apply: (_, { signal }) => act(signal),
    delete: (_, { signal }) => act(signal),
    get: (_, { signal }) => act(signal),
    // biome-ignore lint/correctness/useYield: it never comes to one
    async *watch(_, { signal }) {
      await act(signal);
    },
  };
}

describe('every call', () => {
  test('apply, get, delete', async () => {
    const { api } = await serving();
    const applied = await api.apply(request(serviceDocument('a')), options);
    expect(applied).toMatchObject({
      revision: 1n,
      resources: [{ ref: ref('a'), action: Action.CREATED, addresses: ['10.192.0.2:80'], beforeJson: '', afterJson: '' }],
      problems: [],
    });
    const { objectsJson } = await api.get({ selector: { ...everything, kind: 'svc' } }, options);
    expect(objectsJson.map((json) => JSON.parse(json).metadata.name)).toEqual(['a']);
    const dry = await api.apply({ ...request(serviceDocument('a', { ports: [{ port: 81 }] })), dryRun: true }, options);
    expect(JSON.parse(dry.resources[0]?.afterJson ?? '').spec.ports[0].port).toBe(81);
    const deletion = { refs: [ref('a')], dryRun: false, ignoreNotFound: false, requestId: '' };
    expect(await api.delete(deletion, options)).toEqual({ revision: 2n, deleted: [ref('a')] });
  });

  test('problems come as data', async () => {
    const { api } = await serving();
    const { problems, resources } = await api.apply(request({ kind: 'Servce' }), options);
    expect(problems).toMatchObject([{ file: 'a.yaml', document: 1, path: 'kind' }]);
    expect(resources).toEqual([]);
  });

  test('status and top', async () => {
    const { api, operations } = await serving();
    const problem = { subject: 's', reason: 'r', since: 5, remedy: 'm' };
    operations.current = { ...operations.current, problems: [problem, { ...problem, since: undefined }] };
    const counters = { completed: 1, failed: 2, refused: 3, reset: 4, drained: 5, bytesIn: 6, bytesOut: 7, dialFailures: 8 };
    const none = { limited: 1, evicted: 0, dropped: 0, protocol: 'tcp' as const, declaredEndpoints: 0 };
    const stats = (id: string) => ({ id: id as never, active: 9, ...counters, ...none, endpoints: [] });
    operations.listeners = [stats('default/a/http'), stats('prod/b/http')];
    expect(await api.status(options)).toMatchObject({
      nodeId: 'n1',
      log: { revision: 7n, ageMs: 1_000n },
      problems: [{ sinceMs: 5n }, { sinceMs: 0n }],
    });
    const { services } = await api.top({ namespace: 'prod' }, options);
    expect(services).toMatchObject([
      { namespace: 'prod', service: 'b', port: 'http', active: 9n, drained: 5n, bytesOut: 7n, limited: 1n, protocol: 'tcp' },
    ]);
    expect((await api.top({ namespace: '' }, options)).services).toHaveLength(2);
  });

  test('watch and events go on until abort, which is no error', async () => {
    const { api, operations } = await serving();
    const abort = new AbortController();
    const watch = api.watch({ selector: everything }, abort)[Symbol.asyncIterator]();
    const first = watch.next();
    await api.apply(request(serviceDocument('a')), options);
    expect((await first).value).toMatchObject({ revision: 1n, type: ChangeType.ADDED });
    const events = api.events({ follow: true }, abort)[Symbol.asyncIterator]();
    operations.tell({ subject: 'a', message: 'one' });
    expect((await take(events, 1))[0]).toMatchObject({ sequence: 1n, subject: 'a', message: 'one' });
    const ends = [watch.next(), events.next()];
    abort.abort();
    for (const end of ends) expect((await end).done).toBe(true);
    const late = api.watch({ selector: everything }, abort)[Symbol.asyncIterator]();
    expect((await late.next()).done).toBe(true);
  });

  test('kept events end by themselves', async () => {
    const { api, operations } = await serving();
    operations.tell({ subject: 'a', message: 'one' });
    const seen: string[] = [];
    for await (const { message } of api.events({ follow: false }, options)) seen.push(message);
    expect(seen).toEqual(['one']);
  });
});

describe('errors', () => {
  test.each([
    ['resource.conflict', 'others changed it', /^resource.conflict: others changed it$/],
    ['log.not_written', 'der Datenträger ist voll \u{1f4be}', /voll \u{1f4be}$/u],
    ['vip.exhausted', '', /^vip.exhausted:$/],
  ] as const)('%s is the same on both sides', async (code, problem, message) => {
    const thrown = new AgentError(code, problem === '' ? {} : { problem });
    const { api } = await serving({ resources: resourcesThat(() => Promise.reject(thrown)) });
    const expected = { code, kind: thrown.kind, remedy: thrown.remedy, message: expect.stringMatching(message) };
    await expect(api.get({ selector: everything }, options)).rejects.toMatchObject(expected);
    const watch = api.watch({ selector: everything }, options)[Symbol.asyncIterator]();
    await expect(watch.next()).rejects.toMatchObject(expected);
  });

  test('what to do is what whoever threw it knew', async () => {
    const remedy = 'run the command there';
    const thrown = new AgentError('log.denied', { problem: 'this is a node', remedy });
    const { api } = await serving({ resources: resourcesThat(() => Promise.reject(thrown)) });
    const expected = { code: 'log.denied', message: 'log.denied: this is a node', remedy };
    await expect(api.get({ selector: everything }, options)).rejects.toMatchObject(expected);
    const other = new AgentError('log.denied', { problem: 'this is a node', remedy: 'größer' });
    const { api: second } = await serving({ resources: resourcesThat(() => Promise.reject(other)) });
    await expect(second.get({ selector: everything }, options)).rejects.toMatchObject({ code: 'log.denied' });
  });

  test('one that nobody foresaw is told and logged', async () => {
    const { api, logger } = await serving({ resources: resourcesThat(() => Promise.reject(new TypeError('a bug'))) });
    await expect(api.get({ selector: everything }, options)).rejects.toMatchObject({ code: 'admin.failed', message: /a bug/ });
    expect(logger.dump()).toBe('error an admin call failed');
  });

  test('one with more text than a header takes still arrives', async () => {
    const thrown = new AgentError('resource.invalid', { problem: 'ü'.repeat(200_000) });
    const { api } = await serving({ resources: resourcesThat(() => Promise.reject(thrown)) });
    await expect(api.get({ selector: everything }, options)).rejects.toMatchObject({ code: 'resource.invalid' });
  });

  test.each([
    ['a kind that there is not', { selector: { ...everything, kind: 'Servce' } }, 'did you mean Service'],
    ['a selector that cannot be read', { selector: { ...everything, labels: '=' } }, 'label selector'],
  ])('%s', async (_, get, message) => {
    const { api } = await serving();
    const expected = { code: 'resource.invalid', message: expect.stringMatching(new RegExp(message, 'i')) };
    await expect(api.get(get, options)).rejects.toMatchObject(expected);
  });

  test('a document that is no JSON is named', async () => {
    const { api } = await serving();
    const call = { ...request(), documents: [{ file: 'a.yaml', number: 3, path: '', json: '{' }] };
    await expect(api.apply(call, options)).rejects.toMatchObject({
      code: 'resource.invalid',
      message: 'resource.invalid: a.yaml: document 3: expected JSON',
    });
  });

  test('a call of more than 64 MiB says so', async () => {
    const { api } = await serving();
    const json = JSON.stringify('x'.repeat(65 * 1024 * 1024));
    const call = { ...request(), documents: [{ file: 'a.yaml', number: 1, path: '', json }] };
    await expect(api.apply(call, options)).rejects.toMatchObject({ code: 'admin.too_large', message: /larger than max/ });
    expect(await api.status(options)).toMatchObject({ nodeId: 'n1' });
  });
});

describe('abort', () => {
  test('of a caller ends the work, and is no failure of the daemon', async () => {
    const ended = Promise.withResolvers<void>();
    const resources = resourcesThat(
      (signal) =>
        new Promise((_, reject) =>
          signal.addEventListener('abort', () => {
            ended.resolve();
            reject(signal.reason);
          }),
        ),
    );
    const { api, logger } = await serving({ resources });
    const abort = new AbortController();
    const call = api.get({ selector: everything }, abort);
    await new Promise((resolve) => setTimeout(resolve, 50));
    abort.abort(new Error('interrupted'));
    await expect(call).rejects.toThrow('interrupted');
    await ended.promise;
    expect(logger.dump()).toBe('');
    await expect(api.get({ selector: everything }, abort)).rejects.toThrow('interrupted');
  });
});

test('a hundred clients at once', async () => {
  const { client, view } = await serving();
  const applied = await Promise.all(
    Array.from({ length: 100 }, (_, number) => client().apply(request(serviceDocument(`s${number}`)), options)),
  );
  expect(new Set(applied.map(({ revision }) => revision)).size).toBe(100);
  expect(view.state.size).toBe(100);
});
