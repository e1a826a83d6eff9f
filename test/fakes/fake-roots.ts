import { AgentError } from '../../src/domain/kernel/errors.js';
import type { RootFacts } from '../../src/ports/certificate/authority-maker.js';
import { type RootName, type RootStatus, type Roots, type RootUser, rootNames } from '../../src/ports/driving/roots.js';

const YEAR_MS = 365 * 24 * 60 * 60_000;

/** Roots by number; nodes are put into `users` by tests. */
export class FakeRoots implements Roots {
  /** Of the former root of nodes. */
  users: readonly RootUser[] = [];
  readonly #now: () => number;
  readonly #numbers: Record<RootName, { current: number; replacedAt: number | undefined }>;

  constructor(now: () => number) {
    this.#now = now;
    this.#numbers = { registration: { current: 1, replacedAt: undefined }, nodes: { current: 1, replacedAt: undefined } };
  }

  async list(): Promise<readonly RootStatus[]> {
    return rootNames.map((name) => this.#statusOf(name));
  }

  async rotate(name: RootName): Promise<RootStatus> {
    const numbers = this.#numbers[name];
    if (numbers.replacedAt !== undefined) throw new AgentError('certificate.root_rotating', { problem: name });
    numbers.current += 1;
    numbers.replacedAt = this.#now();
    return this.#statusOf(name);
  }

  async retire(name: RootName, force: boolean) {
    const { former } = this.#statusOf(name);
    if (former === undefined) throw new AgentError('certificate.no_former_root', { problem: name });
    if (former.inUse.length > 0 && !force) throw new AgentError('certificate.root_in_use', { problem: this.users[0]?.nid ?? '' });
    this.#numbers[name].replacedAt = undefined;
    return { retired: former, revoked: former.inUse };
  }

  #statusOf(name: RootName): RootStatus {
    const { current, replacedAt } = this.#numbers[name];
    const inUse = name === 'nodes' ? this.users : [];
    const former = replacedAt === undefined ? undefined : { ...this.#facts(name, current - 1), replacedAt, inUse };
    return { name, current: this.#facts(name, current), former };
  }

  #facts(name: RootName, number: number): RootFacts {
    const times = { notBefore: this.#now(), notAfter: this.#now() + 10 * YEAR_MS };
    return { commonName: `${name} ${number}`, serial: String(number), fingerprint: `${number}`.repeat(64), ...times };
  }
}
