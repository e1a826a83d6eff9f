import { describe, expect, test } from 'vitest';
import { ManifestFollower } from '../../../src/app/resource/manifest-follower.js';
import { FakeManifestSource } from '../../fakes/fake-manifest-source.js';
import { options, resourceRig, serviceDocument } from '../../support/resource-rig.js';

async function setUp({ prune = true } = {}) {
  const rig = await resourceRig();
  const source = new FakeManifestSource(serviceDocument('a'), serviceDocument('b'));
  const follower = new ManifestFollower(source, rig.resources, rig.logger, prune);
  const names = async () => (await rig.resources.get({}, options)).objects.map(({ metadata }) => metadata.name);
  return { ...rig, source, follower, names };
}

describe('once', () => {
  test('applies everything, and says what became of it', async () => {
    const { follower, names } = await setUp();
    expect((await follower.applyOnce(options)).map(({ ref, action }) => `${ref.name} ${action}`)).toEqual([
      'a created',
      'b created',
    ]);
    expect(await names()).toEqual(['a', 'b']);
  });

  test('all that is wrong is one error, a line each, and nothing is applied', async () => {
    const { follower, source, names } = await setUp();
    source.write(serviceDocument('a'), serviceDocument('b', { ports: [{ port: 0 }, { port: 'x' }] }));
    await expect(follower.applyOnce(options)).rejects.toMatchObject({
      code: 'resource.invalid',
      message: [
        'resource.invalid: /fake/hello.yaml: document 2, spec.ports[0].port: expected a port number, 1 to 65535, found 0',
        '  /fake/hello.yaml: document 2, spec.ports[1].port: expected a port number, 1 to 65535, found "x"',
      ].join('\n'),
    });
    expect(await names()).toEqual([]);
  });
});

describe('following', () => {
  test('applies each change, removes what is gone, tells what changed, and ends on abort', async () => {
    const { follower, source, names, clock, logger } = await setUp();
    const abort = new AbortController();
    const following = follower.follow({ signal: abort.signal });
    await clock.advance(0);
    expect(await names()).toEqual(['a', 'b']);
    source.write(serviceDocument('b'), serviceDocument('c'));
    await clock.advance(0);
    expect(await names()).toEqual(['b', 'c']);
    expect(logger.dump()).toBe(
      [
        'info service default/a created',
        'info service default/b created',
        'info service default/a deleted',
        'info service default/c created',
      ].join('\n'),
    );
    abort.abort();
    await following;
  });

  test('without prune nothing is removed', async () => {
    const { follower, source, names, clock } = await setUp({ prune: false });
    const abort = new AbortController();
    const following = follower.follow({ signal: abort.signal });
    await clock.advance(0);
    source.write(serviceDocument('c'));
    await clock.advance(0);
    expect(await names()).toEqual(['a', 'b', 'c']);
    abort.abort();
    await following;
  });

  test('what cannot be read or is wrong is told, what was applied stays, and the next change counts', async () => {
    const { follower, source, names, clock, logger } = await setUp();
    const abort = new AbortController();
    const following = follower.follow({ signal: abort.signal });
    await clock.advance(0);
    source.spoil('hello.yaml: there is no such file');
    await clock.advance(0);
    source.write({ kind: 'Servce' });
    await clock.advance(0);
    expect(await names()).toEqual(['a', 'b']);
    expect(logger.dump('error')).toMatch(/no such file\nerror resource.invalid: .*did you mean Service\?$/);
    source.write(serviceDocument('c'));
    await clock.advance(0);
    expect(await names()).toEqual(['c']);
    abort.abort();
    await following;
  });

  test('an abort in the middle of an apply is not told as a failure', async () => {
    const { follower, clock, logger, listeners } = await setUp();
    const abort = new AbortController();
    listeners.hold();
    const following = follower.follow({ signal: abort.signal });
    await clock.advance(0);
    abort.abort();
    await following;
    expect(logger.dump()).toBe('');
  });
});
