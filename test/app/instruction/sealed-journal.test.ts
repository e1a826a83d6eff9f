import { describe, expect, test } from 'vitest';
import { SealedJournal } from '../../../src/app/instruction/sealed-journal.js';
import type { InstructionKey, Tag } from '../../../src/domain/instruction/model.js';
import { receivedRow } from '../../../src/domain/instruction/row.js';
import { FakeJournal, FakeJournalDisk } from '../../fakes/fake-journal.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeSealer } from '../../fakes/fake-sealer.js';
import { acknowledging, contentOf, InstructionWorld } from '../../support/instruction-rig.js';

const options = { signal: new AbortController().signal };
const key: InstructionKey = { fleet: 'f', tag: 't' as Tag };
const row = receivedRow({
  ...key,
  ...{ type: 'APPLY_CR', digest: '', payloadDigest: '', who: '', lanes: [], repeat: 'repeat', epoch: undefined },
  ...{ receivedAt: 0, expiresAt: undefined, waiterMs: 0, boot: '', task: undefined, background: false },
});
const yaml = 'apiVersion: v1\nkind: Secret\nmetadata: { name: a, namespace: a }\nstringData: { password: s3cret }\n';
const crB64 = Buffer.from(yaml).toString('base64');

async function journals(sealer = new FakeSealer()) {
  const disk = new FakeJournalDisk();
  const plain = new FakeJournal(disk);
  await plain.open(options);
  await plain.commit([{ change: 'row', row }], options);
  return { plain, sealed: new SealedJournal({ journal: plain, sealer, logger: new FakeLogger() }), disk };
}

describe('A8: what is secret', () => {
  test('is sealed in the journal below, and is what it was above', async () => {
    const { plain, sealed } = await journals();
    await sealed.commit(
      [
        { change: 'payload', key, jsonB64: 'cGF5bG9hZA==', secret: true },
        { change: 'reply', key, reply: { type: 'X', jsonB64: 'cmVwbHk=' }, secret: true },
        { change: 'set_aside', key, reply: { type: 'Y', jsonB64: 'YXNpZGU=' }, secret: true },
      ],
      options,
    );
    expect(await sealed.payload(key, options)).toBe('cGF5bG9hZA==');
    expect(await sealed.reply(key, options)).toEqual({ type: 'X', jsonB64: 'cmVwbHk=' });
    expect(await sealed.setAside(key, options)).toEqual({ type: 'Y', jsonB64: 'YXNpZGU=' });
    expect(await plain.payload(key, options)).toMatch(/^sealed:k1\./);
    expect(await plain.reply(key, options)).toMatchObject({ type: 'sealed:X', jsonB64: expect.stringMatching(/^k1\./) });
  });

  test('is not kept any more when its key is gone', async () => {
    const { plain, sealed } = await journals();
    await sealed.commit([{ change: 'payload', key, jsonB64: 'YQ==', secret: true }], options);
    const other = new SealedJournal({ journal: plain, sealer: new FakeSealer(['k2']), logger: new FakeLogger() });
    expect(await other.payload(key, options)).toBeUndefined();
  });

  test('everything else stands there as it is', async () => {
    const { plain, sealed } = await journals();
    await sealed.commit(
      [
        { change: 'payload', key, jsonB64: 'YQ==' },
        { change: 'reply', key, reply: { type: 'ERROR', jsonB64: 'sealed: is a word' } },
      ],
      options,
    );
    expect(await plain.payload(key, options)).toBe('YQ==');
    expect(await sealed.reply(key, options)).toEqual({ type: 'ERROR', jsonB64: 'sealed: is a word' });
    await sealed.commit([{ change: 'reply', key, reply: 'none', secret: true }], options);
    expect(await sealed.reply(key, options)).toBe('none');
  });
});

test('A8: the payload of APPLY_CR is on no disk in the clear, and is run again after a death', async () => {
  const world = new InstructionWorld();
  world.commands.program(['kubectl'], () => new Promise(() => {}));
  const first = await world.start();
  first.connect(acknowledging(first));
  first.deliver('APPLY_CR', 't1', { crB64 });
  await first.settle();
  const stored = await first.journal.payload({ fleet: 'fleet-a', tag: 't1' as Tag }, options);
  expect(stored).toMatch(/^sealed:/);
  expect(stored).not.toContain(crB64);
  world.commands.program(['kubectl'], {});
  const second = await world.start();
  const session = second.connect(acknowledging(second));
  await second.settle();
  expect(world.commands.ran.map(({ stdin }) => stdin)).toEqual([yaml, yaml]);
  expect(session.of('t1').map(contentOf)).toEqual(['{}']);
});

test('A8: a join command is gone from the journal when it is acknowledged', async () => {
  const world = new InstructionWorld();
  world.commands.program(['kubeadm', 'token', 'create'], { stdout: 'kubeadm join 10.0.0.1:6443 --token abc\n' });
  const process = await world.start();
  const session = process.connect();
  process.deliver('GET_CLUSTER_JOIN_CMD', 't1', {});
  await process.settle();
  const own = { fleet: 'fleet-a', tag: 't1' as Tag };
  expect(await process.journal.reply(own, options)).toMatchObject({ type: 'sealed:CLUSTER_JOIN_CMD' });
  expect(session.of('t1').map(contentOf)).toEqual(['{"joinCmd":"kubeadm join 10.0.0.1:6443 --token abc"}']);
  process.deliver('RESULT_ACK', 't1');
  await process.settle();
  expect(await process.journal.reply(own, options)).toBeUndefined();
  process.deliver('GET_CLUSTER_JOIN_CMD', 't1', {});
  await process.settle();
  expect(session.of('t1').map(contentOf).at(-1)).toMatch(/^RESULT_EXPIRED/);
});
