import { describe, expect, test } from 'vitest';
import { type CallFailure, type CallPurpose, callError, completeWish } from '../../../src/domain/certificate/registration.js';

describe('what register is given', () => {
  test('is trimmed', () => {
    expect(completeWish({ server: ' a.example ', account: 'acme\n', token: '\tt.s' })).toEqual({
      server: 'a.example',
      account: 'acme',
      token: 't.s',
    });
  });

  test.each([
    [{ server: '', account: 'acme', token: 't' }, 'missing: server'],
    [{ server: 'a', account: '  ', token: 't' }, 'missing: account'],
    [{ server: 'a', account: 'acme', token: undefined }, 'missing: token'],
    [{ server: undefined, account: undefined, token: undefined }, 'missing: server, account, token'],
    [{ server: 'a', account: 'xxxxx', token: 't' }, 'missing: account'],
  ])('%j: all that is missing is named', (wish, problem) => {
    expect(() => completeWish(wish)).toThrow(expect.objectContaining({ code: 'certificate.incomplete', facts: { problem } }));
  });
});

describe('what a failed call means', () => {
  const registration = (failure: CallFailure, purpose: CallPurpose = 'registration') => {
    const { code, facts } = callError(failure, purpose, 'a:9191', undefined);
    return { code, ...facts };
  };

  test.each<{ failure: CallFailure; code: string; problem: string }>([
    {
      failure: { status: 'PERMISSION_DENIED', details: 'the token is wrong, has expired, or was used' },
      code: 'certificate.token_refused',
      problem: 'a:9191 refused: the token is wrong, has expired, or was used',
    },
    { failure: { status: 'UNAUTHENTICATED', details: '' }, code: 'certificate.token_refused', problem: 'a:9191 refused' },
    {
      failure: { status: 'NOT_FOUND', details: 'no such account' },
      code: 'certificate.unknown_account',
      problem: 'a:9191 does not take it: no such account',
    },
    {
      failure: { status: 'INVALID_ARGUMENT', details: 'aid' },
      code: 'certificate.unknown_account',
      problem: 'a:9191 does not take it: aid',
    },
    {
      failure: { status: 'RESOURCE_EXHAUSTED', details: 'later' },
      code: 'certificate.too_many',
      problem: 'a:9191 has no room for it now: later',
    },
    {
      failure: { status: 'UNIMPLEMENTED', details: 'unknown method' },
      code: 'link.refused',
      problem: 'a:9191 is no control plane for this: unknown method',
    },
    { failure: { status: 'OTHER', details: 'boom' }, code: 'link.refused', problem: 'a:9191 failed: boom' },
    {
      failure: { status: 'UNAVAILABLE', details: 'x', reach: { stage: 'name', detail: 'ENOTFOUND' } },
      code: 'link.unreachable',
      problem: 'the name of a:9191 is not known: ENOTFOUND',
    },
    {
      failure: { status: 'UNAVAILABLE', details: 'x', reach: { stage: 'closed', detail: 'ECONNREFUSED' } },
      code: 'link.unreachable',
      problem: 'nothing listens at a:9191: ECONNREFUSED',
    },
    {
      failure: { status: 'DEADLINE_EXCEEDED', details: 'x', reach: { stage: 'silent', detail: 'no answer within 5 s' } },
      code: 'link.unreachable',
      problem: 'a:9191 does not answer: no answer within 5 s',
    },
    {
      failure: { status: 'UNAVAILABLE', details: 'x', reach: { stage: 'tls', detail: 'SELF_SIGNED' } },
      code: 'certificate.untrusted',
      problem: 'the certificate of a:9191 is not good: SELF_SIGNED',
    },
    {
      failure: { status: 'UNAVAILABLE', details: 'x', reach: { stage: 'refused', detail: 'ECONNRESET' } },
      code: 'certificate.refused',
      problem: "a:9191 refused this node's certificate: ECONNRESET",
    },
    {
      failure: { status: 'UNAVAILABLE', details: 'the store', reach: { stage: 'through' } },
      code: 'link.unreachable',
      problem: 'a:9191 can be reached, but cannot serve this now: the store',
    },
    {
      failure: { status: 'DEADLINE_EXCEEDED', details: '' },
      code: 'link.unreachable',
      problem: 'a:9191 can be reached, but did not answer in time',
    },
  ])('$failure.status $failure.reach.stage', ({ failure, code, problem }) => {
    expect(registration(failure)).toMatchObject({ code, problem });
  });

  test('a name that is not known and a port that is closed have remedies of their own', () => {
    const name = registration({ status: 'UNAVAILABLE', details: '', reach: { stage: 'name', detail: '' } });
    const closed = registration({ status: 'UNAVAILABLE', details: '', reach: { stage: 'closed', detail: '' } });
    const silent = registration({ status: 'UNAVAILABLE', details: '', reach: { stage: 'silent', detail: '' } });
    expect('remedy' in name && name.remedy).toContain('resolv.conf');
    expect('remedy' in closed && closed.remedy).toContain('check the port');
    expect('remedy' in silent && silent.remedy).toContain('firewalls');
  });

  test('who is refused at renewal needs no token', () => {
    expect(registration({ status: 'PERMISSION_DENIED', details: 'revoked' }, 'renewal')).toEqual({
      code: 'certificate.refused',
      problem: 'a:9191 refused: revoked',
    });
  });

  test.each<{ failure: CallFailure; code: string; problem: string; remedy: RegExp }>([
    {
      failure: { status: 'UNAUTHENTICATED', details: 'revoked: lost' },
      code: 'certificate.refused',
      problem: 'a:9191 refused: revoked: lost',
      remedy: /cert create/,
    },
    {
      failure: { status: 'UNAVAILABLE', details: '', reach: { stage: 'refused', detail: 'ECONNRESET' } },
      code: 'certificate.refused',
      problem: 'a:9191 refused this certificate: ECONNRESET',
      remedy: /cert create/,
    },
    {
      failure: { status: 'UNAVAILABLE', details: '', reach: { stage: 'closed', detail: 'ECONNREFUSED' } },
      code: 'admin.unreachable',
      problem: 'nothing listens at a:9191: ECONNREFUSED',
      remedy: /server\.listen\.admin/,
    },
    {
      failure: { status: 'DEADLINE_EXCEEDED', details: '', reach: { stage: 'silent', detail: 'no answer within 5 s' } },
      code: 'admin.unreachable',
      problem: 'a:9191 does not answer: no answer within 5 s',
      remedy: /firewalls/,
    },
    {
      failure: { status: 'UNAVAILABLE', details: 'dropped', reach: { stage: 'through' } },
      code: 'admin.unreachable',
      problem: 'a:9191 can be reached, but cannot serve this now: dropped',
      remedy: /log of the server/,
    },
  ])('of an admin: $failure.status $failure.reach.stage', ({ failure, code, problem, remedy }) => {
    expect(registration(failure, 'admin')).toEqual({ code, problem, remedy: expect.stringMatching(remedy) });
  });

  test('F3: a clock that is off is named beside it, and is the remedy for a certificate', () => {
    expect(
      registration({
        status: 'UNAVAILABLE',
        details: '',
        reach: { stage: 'tls', detail: 'CERT_NOT_YET_VALID' },
        clock: 'the clock is 2 h behind',
      }),
    ).toEqual({
      code: 'certificate.untrusted',
      problem: 'the certificate of a:9191 is not good: CERT_NOT_YET_VALID; the clock is 2 h behind',
      remedy: 'set the clock of this machine and try again',
    });
  });
});
