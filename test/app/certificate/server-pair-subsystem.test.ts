import { describe, expect, onTestFinished, test } from 'vitest';
import { IssuerAuthority } from '../../../src/app/certificate/issuer-authority.js';
import { OwnCertificates } from '../../../src/app/certificate/own-certificates.js';
import { ServerPairSubsystem } from '../../../src/app/certificate/server-pair-subsystem.js';
import { FakeAuthorityMaker, FakeCertificateAuthority } from '../../fakes/fake-certificate-authority.js';
import { parseFakeCertificate } from '../../fakes/fake-certificates.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { countingBytes, DAY, signal } from './rig.js';

function setUp() {
  const [clock, logger] = [new FakeClock(), new FakeLogger()];
  const authority = new FakeCertificateAuthority();
  const issuer = new IssuerAuthority({ certificate: authority.root, privateKey: '' }, authority);
  const authorities = { l1: issuer, l2: issuer, admin: issuer };
  const own = new OwnCertificates({ maker: new FakeAuthorityMaker(), authorities, clock, randomBytes: countingBytes() });
  let renewed = 0;
  const part = new ServerPairSubsystem({
    own,
    port: 'l2',
    server: 'a',
    hosts: ['a.example'],
    clock,
    logger,
    random: () => 0,
    onRenewed: () => {
      renewed += 1;
    },
  });
  onTestFinished(() => part.stop());
  return { authority, clock, logger, part, renewed: () => renewed };
}

describe('the certificate of a port', () => {
  test('is there when it has started, for the names of the server', async () => {
    const { part, renewed } = setUp();
    expect(() => part.pair()).toThrow('the l2 certificate is not made yet');
    await part.start(signal);
    expect(parseFakeCertificate(part.pair().certificate)).toMatchObject({
      identity: { role: 'server', name: 'a' },
      hosts: ['a.example'],
    });
    expect(renewed()).toBe(0);
  });

  test('is made anew when a third of its time is left, and so on', async () => {
    const { clock, part, renewed } = setUp();
    await part.start(signal);
    const first = part.pair();
    await clock.advance(59 * DAY);
    expect([part.pair(), renewed()]).toEqual([first, 0]);
    await clock.advance(2 * DAY);
    expect(part.pair().certificate).not.toBe(first.certificate);
    expect(renewed()).toBe(1);
    await clock.advance(300 * DAY);
    expect(renewed()).toBeGreaterThanOrEqual(5);
    expect(part.pair().notAfter).toBeGreaterThan(clock.now());
  });

  test('one that cannot be made leaves the old one, and is tried again', async () => {
    const { authority, clock, logger, part, renewed } = setUp();
    await part.start(signal);
    const first = part.pair();
    authority.failNext(new Error('no entropy'));
    await clock.advance(60 * DAY);
    expect([part.pair(), renewed()]).toEqual([first, 0]);
    await clock.advance(DAY);
    expect(renewed()).toBe(1);
    expect(logger.dump('warn')).toContain('l2 certificate: failed, will be tried again');
  });

  test('that cannot be made at all fails the start', async () => {
    const { authority, part } = setUp();
    authority.failNext(new Error('no entropy'));
    await expect(part.start(signal)).rejects.toThrow('no entropy');
    await part.stop();
  });
});
