import type { CallOptions } from '../../src/ports/call-options.js';
import type { Pair } from '../../src/ports/certificate/pair-store.js';
import type {
  RegistrationAnswer,
  RegistrationClient,
  RegistrationRequest,
} from '../../src/ports/certificate/registration-client.js';
import type { RenewalAnswer, RenewalClient } from '../../src/ports/certificate/renewal-client.js';

/** What a server does with a call: a function of a test, or one of `Enrolment`. */
type Answering<Request, Answer> = (request: Request, options: CallOptions) => Promise<Answer>;

/** Calls that can be told to fail before, or after, the server has done them. */
class Calls {
  #before: unknown[] = [];
  #after: unknown[] = [];

  failNext(...errors: readonly unknown[]): void {
    this.#before.push(...errors);
  }

  loseNextAnswer(error: unknown): void {
    this.#after.push(error);
  }

  async run<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.#before.length > 0) throw this.#before.shift();
    const answer = await call();
    if (this.#after.length > 0) throw this.#after.shift();
    return answer;
  }
}

export class FakeRegistrationClient implements RegistrationClient {
  readonly calls = new Calls();
  readonly #answer: Answering<RegistrationRequest, RegistrationAnswer>;
  readonly requests: RegistrationRequest[] = [];
  #rootProblem: unknown;

  constructor(answer: Answering<RegistrationRequest, RegistrationAnswer>) {
    this.#answer = answer;
  }

  /** From now on the root is not good. */
  spoilRoot(error: unknown): void {
    this.#rootProblem = error;
  }

  async check({ signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    if (this.#rootProblem !== undefined) throw this.#rootProblem;
  }

  register(request: RegistrationRequest, options: CallOptions): Promise<RegistrationAnswer> {
    return this.calls.run(options.signal, () => {
      this.requests.push(request);
      return this.#answer(request, options);
    });
  }
}

export interface FakeRenewalServer {
  readonly regenerate: (pair: Pair, csr: Uint8Array, options: CallOptions) => Promise<RenewalAnswer>;
  readonly tryPair: (pair: Pair, options: CallOptions) => Promise<void>;
}

export class FakeRenewalClient implements RenewalClient {
  readonly regenerating = new Calls();
  readonly trying = new Calls();
  readonly #server: FakeRenewalServer;

  constructor(server: FakeRenewalServer) {
    this.#server = server;
  }

  regenerate(pair: Pair, csr: Uint8Array, options: CallOptions): Promise<RenewalAnswer> {
    return this.regenerating.run(options.signal, () => this.#server.regenerate(pair, csr, options));
  }

  tryPair(pair: Pair, options: CallOptions): Promise<void> {
    return this.trying.run(options.signal, () => this.#server.tryPair(pair, options));
  }
}
