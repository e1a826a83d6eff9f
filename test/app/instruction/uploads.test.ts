import { describe, expect, test } from 'vitest';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import type { LinkMessage } from '../../../src/domain/link/model.js';
import type { CallOptions } from '../../../src/ports/call-options.js';
import { FakeSession, InstructionWorld, serverFacts } from '../../support/instruction-rig.js';

const LARGE = 300_000;
const uploading = () => new FakeSession(serverFacts({}, ['redeliver', 'result-ack', 'result-upload']));

/** A control plane that takes uploads as its test says. */
async function rig(take: (reply: LinkMessage, options: CallOptions) => Promise<void> = async () => {}) {
  const world = new InstructionWorld();
  const uploaded: LinkMessage[] = [];
  const upload = (reply: LinkMessage, options: CallOptions) => {
    uploaded.push(reply);
    return take(reply, options);
  };
  const process = await world.start({ upload });
  world.tasks.install('/bin/bash', async ({ files }) => {
    const text = new TextDecoder().decode(files.script);
    return { stdout: text.startsWith('large') ? text.padEnd(LARGE, 'x') : text };
  });
  for (const name of ['small', 'large', 'large2']) world.script(name, name);
  const run = async (...names: readonly string[]) => {
    for (const name of names) process.deliver('RUN_REMOTE_SCRIPT', name, { script: name }, { expiresInMs: 3_600_000 });
    await process.settle();
  };
  return { world, process, uploaded, run, tags: () => uploaded.map(({ tag }) => tag) };
}

const sentTags = (session: FakeSession) => session.sent.map(({ tag }) => tag);
const unconfirmed = (process: { readonly engine: { snapshot(): { readonly unconfirmed: number } } }) =>
  process.engine.snapshot().unconfirmed;

describe('A15c: a reply over 256 KiB', () => {
  test('goes beside the stream, small ones on it, and is confirmed by the end of its upload', async () => {
    const { process, uploaded, run } = await rig();
    const session = process.connect(uploading());
    await run('large', 'small');
    expect(uploaded).toEqual([{ tag: 'large', type: 'RUN_REMOTE_SCRIPT_RESPONSE', jsonB64: expect.any(String) }]);
    expect(uploaded[0]?.jsonB64.length).toBeGreaterThan(256 * 1024);
    expect(sentTags(session)).toEqual(['small']);
    process.deliver('RESULT_ACK', 'large');
    process.deliver('RESULT_ACK', 'small');
    await process.settle(100_000);
    expect({ uploads: uploaded.length, unconfirmed: unconfirmed(process) }).toEqual({ uploads: 1, unconfirmed: 0 });
  });

  test('goes over the stream to a server that does not take uploads', async () => {
    const { process, uploaded, run } = await rig();
    const session = process.connect();
    await run('large');
    expect({ uploaded, sent: sentTags(session) }).toEqual({ uploaded: [], sent: ['large'] });
  });

  test('goes over the stream where the call is unimplemented, and so do those after it', async () => {
    const { process, run, tags } = await rig(() => Promise.reject(new AgentError('link.not_offered', { problem: 'unknown' })));
    const session = process.connect(uploading());
    await run('large');
    expect({ tags: tags(), sent: sentTags(session) }).toEqual({ tags: ['large'], sent: ['large'] });
    await run('large2');
    expect({ tags: tags(), sent: sentTags(session) }).toEqual({ tags: ['large'], sent: ['large', 'large2'] });
  });

  test('is uploaded one at a time, and neither holds up small ones nor is begun twice while it takes minutes', async () => {
    const gate = Promise.withResolvers<void>();
    const { process, run, tags } = await rig(() => gate.promise);
    const session = process.connect(uploading());
    await run('large', 'large2');
    await process.settle(120_000);
    await run('small');
    expect({ tags: tags(), sent: sentTags(session) }).toEqual({ tags: ['large'], sent: ['small'] });
    gate.resolve();
    await process.settle();
    expect(tags()).toEqual(['large', 'large2']);
  });

  test('begins anew as a whole on the next stream when the connection is lost in the middle', async () => {
    let lost = 0;
    const { process, run, uploaded, tags } = await rig((_, { signal }) => {
      if (uploaded.length > 1) return Promise.resolve();
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          lost += 1;
          reject(signal.reason);
        });
      });
    });
    process.connect(uploading());
    await run('large');
    await process.settle(6_000);
    process.drop();
    await process.settle();
    expect({ lost, unconfirmed: unconfirmed(process) }).toEqual({ lost: 1, unconfirmed: 1 });
    process.connect(uploading());
    await process.settle();
    expect({ tags: tags(), unconfirmed: unconfirmed(process) }).toEqual({ tags: ['large', 'large'], unconfirmed: 0 });
    expect(uploaded[1]).toEqual(uploaded[0]);
  });

  test('that failed otherwise is offered again after 30 s', async () => {
    let failures = 2;
    const { process, run, tags } = await rig(async () => {
      failures -= 1;
      if (failures >= 0) throw new AgentError('link.unreachable', { problem: 'busy' });
    });
    const session = process.connect(uploading());
    await run('large');
    await process.settle(29_999);
    expect(tags()).toHaveLength(1);
    await process.settle(31_000);
    expect({ tags: tags().length, sent: session.sent, unconfirmed: unconfirmed(process) }).toEqual({
      ...{ tags: 3, sent: [], unconfirmed: 0 },
    });
  });
});
