import { describe, expect, test } from 'vitest';
import { AgentError, type ErrorCode } from '../../src/domain/kernel/errors.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { Pair } from '../../src/ports/certificate/pair-store.js';
import type {
  RegistrationAnswer,
  RegistrationClient,
  RegistrationRequest,
} from '../../src/ports/certificate/registration-client.js';
import type { RenewalAnswer, RenewalClient } from '../../src/ports/certificate/renewal-client.js';

const options = { signal: new AbortController().signal };
const aborted = { signal: AbortSignal.abort() };
const failing = (code: ErrorCode) => async () => {
  throw new AgentError(code, { problem: 'so it is' });
};

export interface RegistrationKit {
  readonly client: RegistrationClient;
  /** The server is no more. */
  readonly stop: () => Promise<void>;
}

/** Every RegistrationClient must pass. `make` gives one whose server answers with `answer`, or fails like it. */
export function registrationClientContract(
  name: string,
  make: (answer: (request: RegistrationRequest, options: CallOptions) => Promise<RegistrationAnswer>) => Promise<RegistrationKit>,
): void {
  const request: RegistrationRequest = {
    machineId: 'm1',
    account: 'acme',
    token: '0123456789ab.secret',
    os: 'debian-12',
    hostCidrs: ['10.0.0.0/24', '192.168.0.0/16'],
    csr: Uint8Array.of(48, 0, 255),
  };
  const answer: RegistrationAnswer = { nid: 'n1', privateKey: '', certificate: 'certificate', ca: 'ca' };

  describe(`RegistrationClient: ${name}`, () => {
    test('sends what it is given, and gives what is answered', async () => {
      const requests: RegistrationRequest[] = [];
      const { client } = await make(async (sent) => {
        requests.push({ ...sent, csr: Uint8Array.from(sent.csr) });
        return answer;
      });
      await client.check(options);
      expect(await client.register(request, options)).toEqual(answer);
      expect(requests).toEqual([request]);
    });

    test.each(['certificate.token_refused', 'certificate.unknown_account', 'certificate.too_many'] as const)(
      '%s of the server is so here',
      async (code) => {
        const { client } = await make(failing(code));
        await expect(client.register(request, options)).rejects.toMatchObject({ code });
      },
    );

    test('a server that is no more is not reached', async () => {
      const { client, stop } = await make(async () => answer);
      await stop();
      await expect(client.register(request, options)).rejects.toMatchObject({ code: 'link.unreachable' });
    });

    test('aborted calls reject', async () => {
      const { client } = await make(async () => answer);
      await expect(client.register(request, aborted)).rejects.toThrow();
      await expect(client.check(aborted)).rejects.toThrow();
    });
  });
}

export interface RenewalServer {
  /** With the certificate (PEM) that the call showed. */
  readonly regenerate: (certificate: string, csr: Uint8Array) => Promise<RenewalAnswer>;
  readonly admit: (certificate: string) => Promise<void>;
}

export interface RenewalKit {
  readonly client: RenewalClient;
  /** Two that the server's authority has issued. */
  readonly pairs: readonly [Pair, Pair];
  readonly stop: () => Promise<void>;
}

/** Every RenewalClient must pass. */
export function renewalClientContract(name: string, make: (server: RenewalServer) => Promise<RenewalKit>): void {
  const answer: RenewalAnswer = { privateKey: '', certificate: 'certificate', ca: 'ca' };
  const good: RenewalServer = { regenerate: async () => answer, admit: async () => {} };

  describe(`RenewalClient: ${name}`, () => {
    test('asks with one pair, and tries the other', async () => {
      const seen: string[] = [];
      const { client, pairs } = await make({
        regenerate: async (certificate, csr) => {
          seen.push(`regenerate ${certificate} ${Buffer.from(csr).toString('hex')}`);
          return answer;
        },
        admit: async (certificate) => {
          seen.push(`admit ${certificate}`);
        },
      });
      expect(await client.regenerate(pairs[0], Uint8Array.of(1, 2), options)).toEqual(answer);
      await client.tryPair(pairs[1], options);
      expect(seen).toEqual([`regenerate ${pairs[0].certificate} 0102`, `admit ${pairs[1].certificate}`]);
    });

    test('a refused certificate is of no use', async () => {
      const bad = { regenerate: failing('certificate.revoked'), admit: failing('certificate.revoked') };
      const { client, pairs } = await make(bad);
      await expect(client.tryPair(pairs[0], options)).rejects.toMatchObject({ code: 'certificate.refused' });
      await expect(client.regenerate(pairs[0], Uint8Array.of(1), options)).rejects.toMatchObject({ code: 'certificate.refused' });
    });

    test('too many are too many', async () => {
      const { client, pairs } = await make({ ...good, regenerate: failing('certificate.too_many') });
      await expect(client.regenerate(pairs[0], Uint8Array.of(1), options)).rejects.toMatchObject({
        code: 'certificate.too_many',
      });
    });

    test('a server that is no more says nothing about a certificate', async () => {
      const { client, pairs, stop } = await make(good);
      await stop();
      await expect(client.tryPair(pairs[0], options)).rejects.toMatchObject({ code: 'link.unreachable' });
      await expect(client.regenerate(pairs[0], Uint8Array.of(1), options)).rejects.toMatchObject({ code: 'link.unreachable' });
    });

    test('aborted calls reject', async () => {
      const { client, pairs } = await make(good);
      await expect(client.tryPair(pairs[0], aborted)).rejects.toThrow();
      await expect(client.regenerate(pairs[0], Uint8Array.of(1), aborted)).rejects.toThrow();
    });
  });
}
