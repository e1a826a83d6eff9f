import { describe, expect, test } from 'vitest';
import { ResourceService } from '../../../src/app/resource/resource-service.js';
import { vipRange } from '../../../src/domain/dataplane/vip.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { revision } from '../../../src/domain/log/model.js';
import { applyCall, options, ref, resourceRig, serviceDocument } from '../../support/resource-rig.js';

/** A log whose newest revision can be kept back, as an etcd without a quorum does. */
async function readRig() {
  const rig = await resourceRig();
  let answers: 'at once' | 'never' | 'unavailable' = 'at once';
  const { log, view, listeners, clock } = rig;
  const resources = new ResourceService({
    ...{ log, view, listeners, clock, vipRange: vipRange('10.192.0.0/16') },
    newest: async (given) => {
      if (answers === 'unavailable') throw new AgentError('store.unavailable', { problem: 'told to be away' });
      if (answers === 'never')
        await new Promise((_, reject) => given.signal.addEventListener('abort', () => reject(given.signal.reason)));
      return log.head(given);
    },
  });
  await resources.apply(applyCall([serviceDocument('hello')]), options);
  const as = (how: typeof answers) => {
    answers = how;
  };
  return { ...rig, resources, as };
}

describe('E10: how new an answer is', () => {
  test('one that is to be the newest is refused when nobody can tell: at once, or after 5 s', async () => {
    const { resources, clock, as } = await readRig();
    as('unavailable');
    await expect(resources.get({}, options)).rejects.toMatchObject({
      code: 'log.not_current',
      facts: { problem: expect.stringContaining('told') },
    });
    as('never');
    const late = resources.get({}, options);
    late.catch(() => {});
    await clock.advance(5_000);
    await expect(late).rejects.toMatchObject({ code: 'log.not_current', remedy: expect.stringContaining('--stale') });
    const watched = resources.watch({}, options)[Symbol.asyncIterator]().next();
    watched.catch(() => {});
    await clock.advance(5_000);
    await expect(watched).rejects.toMatchObject({ code: 'log.not_current' });
  });

  test('a stale one is given all the same, with its age', async () => {
    const { resources, clock, view, as } = await readRig();
    as('never');
    view.ageMs = () => 12_345;
    const { objects, ageMs, revision: at } = await resources.get({}, { ...options, stale: true });
    expect({ names: objects.map(({ metadata }) => metadata.name), ageMs, at }).toEqual({
      names: ['hello'],
      ageMs: 12_345,
      at: 1n,
    });
    const first = await resources
      .watch({}, { ...options, stale: true })
      [Symbol.asyncIterator]()
      .next();
    expect(first.value).toMatchObject({ type: 'added' });
    await clock.advance(0);
  });

  test('a revision that is not here yet is waited for, 5 s at most, also by a stale one', async () => {
    const { resources, log, clock } = await readRig();
    const stale = resources.get({}, { ...options, stale: true, atLeast: revision(2n) });
    await clock.advance(4_000);
    await resources.apply(applyCall([serviceDocument('late')]), options);
    expect((await stale).revision).toBe(2n);
    const never = resources.get({}, { ...options, atLeast: revision(9n) });
    never.catch(() => {});
    await clock.advance(5_000);
    await expect(never).rejects.toMatchObject({
      code: 'log.not_current',
      facts: { problem: expect.stringContaining('revision 9') },
    });
    expect((await log.head(options)).revision).toBe(2n);
  });

  test('what cannot be planned on the newest state is not written, and says so', async () => {
    const { resources, log, as } = await readRig();
    as('unavailable');
    const refused = { code: 'log.not_written', facts: { problem: expect.stringContaining('not written') } };
    await expect(resources.apply(applyCall([serviceDocument('b')]), options)).rejects.toMatchObject(refused);
    const deletion = { refs: [ref('hello')], dryRun: false, ignoreNotFound: false };
    await expect(resources.delete(deletion, options)).rejects.toMatchObject(refused);
    expect((await log.head(options)).revision).toBe(1n);
  });
});
