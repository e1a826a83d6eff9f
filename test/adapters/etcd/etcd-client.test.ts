import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test as anywhere, describe, expect } from 'vitest';
import type { EtcdClient } from '../../../src/adapters/etcd/etcd-client.js';
import { putOp, range, writtenAt } from '../../../src/adapters/etcd/etcd-messages.js';
import { EtcdRig, type EtcdRigOptions, hasEtcd } from '../../support/etcd-rig.js';
import { eventually } from '../../support/eventually.js';
import { openssl } from '../certificate/openssl.js';

const test = anywhere.skipIf(!hasEtcd);

const options = { signal: new AbortController().signal };
const rigs: EtcdRig[] = [];
const start = async (how: EtcdRigOptions = {}) => {
  const rig = await EtcdRig.start(how);
  rigs.push(rig);
  return rig;
};
afterEach(async () => {
  for (const rig of rigs.splice(0)) await rig.stop();
});

const put = (client: EtcdClient, key: string, value: string) =>
  client.txn({ compare: [], success: [putOp(key, value)], failure: [] }, options);
const values = async (client: EtcdClient, prefix: string) =>
  (await client.list(prefix, options))?.kvs.map(({ value }) => value.toString().slice(0, 4));

test('a list is paged, each page at one revision, and pages that are too large are asked for again in halves', async () => {
  const client = (await start({ flags: ['--max-request-bytes', '1500000'] })).client();
  for (let i = 0; i < 90; i += 1) await put(client, `large/${String(i).padStart(4, '0')}`, `${i} ${'x'.repeat(1_048_576)}`);
  expect(await values(client, 'large/')).toHaveLength(90);
  for (let page = 0; page < 21; page += 1) {
    const success = Array.from({ length: 100 }, (_, i) => putOp(`small/${String(page * 100 + i).padStart(5, '0')}`, 'x'));
    await client.txn({ compare: [], success, failure: [] }, options);
  }
  expect(await values(client, 'small/')).toHaveLength(2_100);
  expect((await client.list('small/', { ...options, keysOnly: true }))?.kvs[7]).toMatchObject({ value: Buffer.alloc(0) });
});

test('a revision that is compacted is a value, not an error', async () => {
  const rig = await start();
  const client = rig.client();
  await put(client, 'a', '1');
  await put(client, 'a', '2');
  await rig.compact();
  expect(await client.range(range('a', { revision: 2n }), options)).toBeUndefined();
  expect(await client.list('a', { ...options, revision: 2n })).toBeUndefined();
});

describe('E10: what a failed write means', () => {
  test('a member that is not there has certainly not done it', async () => {
    const rig = await start();
    const client = rig.client();
    await put(client, 'a', '1');
    await rig.kill(0);
    // The first may have been on its way when the connection broke.
    await put(client, 'a', '2').catch(() => {});
    const begun = performance.now();
    await expect(put(client, 'a', '3')).rejects.toMatchObject({ code: 'store.unavailable' });
    expect(performance.now() - begun).toBeLessThan(5_000);
  });

  test('of one that is frozen it is not known, and is answered within 5 s', async () => {
    const rig = await start();
    const client = rig.client();
    await put(client, 'a', '1');
    rig.signal(0, 'SIGSTOP');
    const begun = performance.now();
    await expect(put(client, 'a', '2')).rejects.toMatchObject({ code: 'store.outcome_unknown' });
    expect(performance.now() - begun).toBeLessThan(5_000);
    rig.signal(0, 'SIGCONT');
  });

  test('what etcd refuses is not repeated', async () => {
    const client = (await start()).client();
    const compare = Array.from({ length: 200 }, () => writtenAt('a', 0n));
    await expect(client.txn({ compare, success: [], failure: [] }, options)).rejects.toMatchObject({ code: 'store.unavailable' });
    await expect(put(client, 'a', 'x'.repeat(2_000_000))).rejects.toMatchObject({ code: 'store.too_large' });
  });
});

test('of three members any one may go; without two, writes fail within 5 s, and go on when one is back', async () => {
  const rig = await start({ members: 3 });
  const client = rig.client();
  await put(client, 'a', '1');
  await rig.kill(0);
  await eventually(() => put(client, 'a', '2').then(() => 'done', String)).toBe('done');
  await rig.kill(1);
  const begun = performance.now();
  await expect(put(client, 'a', '3')).rejects.toMatchObject({ kind: 'unavailable' });
  await expect(client.range(range('a'), options)).rejects.toMatchObject({ code: 'store.unavailable' });
  expect(performance.now() - begun).toBeLessThan(10_000);
  rig.restart(1);
  await eventually(() => put(client, 'b', '4').then(() => 'done', String)).toBe('done');
});

test('E6: a watch joins what comes in fragments, and ends when its member loses its leader', async () => {
  const rig = await start({ members: 3, flags: ['--max-request-bytes', '1500000'] });
  const client = rig.client();
  const from = (await rig.revision()) + 1n;
  // 30 MiB of changes at one time are more than one answer of etcd.
  for (let i = 0; i < 30; i += 1) await put(client, `w/${i}`, 'x'.repeat(1_048_576));
  const seen: string[] = [];
  const watching = (async () => {
    for await (const answer of client.watch({ prefix: 'w/', revision: from }, options)) {
      if (answer.kind === 'events') seen.push(...answer.events.map(({ kv }) => kv?.key.toString() ?? ''));
    }
  })();
  watching.catch(() => {});
  await eventually(() => seen.length).toBe(30);
  expect(seen).toEqual(Array.from({ length: 30 }, (_, i) => `w/${i}`));
  await rig.kill(1);
  await rig.kill(2);
  await expect(watching).rejects.toMatchObject({ code: 'store.unavailable' });
});

test('abort ends a call and a watch', async () => {
  const client = (await start()).client();
  const abort = new AbortController();
  const watch = client.watch({ prefix: 'a', revision: 1n }, { signal: abort.signal });
  expect((await watch.next()).value).toEqual({ kind: 'created' });
  const next = watch.next();
  abort.abort(new Error('enough'));
  expect((await next).done).toBe(true);
  await expect(client.range(range('a'), { signal: abort.signal })).rejects.toThrow('enough');
});

test('mutual TLS: with the pair it is let in, without it or with another root not', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-etcd-tls-'));
  const at = (name: string) => join(folder, name);
  const curve = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes';
  for (const ca of ['ca', 'other'])
    await openssl(`req -x509 ${curve} -subj /CN=${ca} -keyout ${at(`${ca}.key`)} -out ${at(`${ca}.crt`)}`);
  await openssl(
    `req -x509 ${curve} -subj /CN=etcd -addext subjectAltName=IP:127.0.0.1 -CA ${at('ca.crt')} -CAkey ${at('ca.key')} -keyout ${at('pair.key')} -out ${at('pair.crt')}`,
  );
  const [ca, other, certificate, key] = await Promise.all(
    ['ca.crt', 'other.crt', 'pair.crt', 'pair.key'].map((name) => readFile(at(name), 'utf8')),
  );
  const tls = { certificate: at('pair.crt'), key: at('pair.key'), ca: at('ca.crt') };
  const rig = await start({ tls, clientTls: { ca, certificate, key } });
  await put(rig.client(), 'a', '1');
  for (const wrong of [{ ca }, { ca: other, certificate, key }])
    await expect(put(rig.client(rig.urls, wrong), 'a', '2')).rejects.toMatchObject({ kind: 'unavailable' });
  await rm(folder, { recursive: true });
});
