import { AgentError } from '../../src/domain/kernel/errors.js';
import type { UnitState } from '../../src/domain/service/model.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { Clock } from '../../src/ports/clock.js';
import type { Units } from '../../src/ports/service/units.js';

/** What a unit does when it is started: it runs, ends after a while, ends and is started again, or is not started at all. */
export type StartResult = 'runs' | { readonly endsAfterMs: number; readonly again?: boolean } | { readonly refuses: string };

interface Unit {
  readonly start: () => StartResult;
  startedAt: bigint;
  /** Monotonic clock; undefined: it does not run. */
  endsAt: number | undefined;
  again: boolean;
}

/** Units that a test writes. */
export class FakeUnits implements Units {
  readonly restarts: string[] = [];
  readonly reloads: string[] = [];
  /** Is told of each unit that reads its files again. */
  onReload: (unit: string) => void = () => {};
  readonly #clock: Clock;
  readonly #units = new Map<string, Unit>();
  #unmanaged = false;
  #counter = 0n;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** It does not run yet. */
  install(unit: string, start: () => StartResult = () => 'runs'): void {
    this.#units.set(unit, { start, startedAt: 0n, endsAt: undefined, again: false });
  }

  /** From now on nobody runs services here. */
  remove(): void {
    this.#unmanaged = true;
  }

  async state(name: string, options: CallOptions): Promise<UnitState> {
    this.#check(options);
    const unit = this.#units.get(name);
    if (unit === undefined) return { isKnown: false, isActive: false, startedAt: 0n, text: 'inactive (dead)' };
    this.#pass(unit);
    const isActive = unit.endsAt !== undefined;
    return { isKnown: true, isActive, startedAt: unit.startedAt, text: isActive ? 'active (running)' : 'failed (failed)' };
  }

  async restart(name: string, options: CallOptions): Promise<void> {
    this.#check(options);
    const unit = this.#units.get(name);
    if (unit === undefined) throw new AgentError('service.failed', { problem: `systemctl restart ${name}: Unit not found` });
    this.restarts.push(name);
    const result = unit.start();
    unit.endsAt = undefined;
    if (result !== 'runs' && 'refuses' in result)
      throw new AgentError('service.failed', { problem: `systemctl restart ${name}: ${result.refuses}` });
    this.#begin(unit, result === 'runs' ? Number.POSITIVE_INFINITY : this.#clock.monotonic() + result.endsAfterMs);
    unit.again = result !== 'runs' && result.again === true;
  }

  async reload(name: string, options: CallOptions): Promise<void> {
    const { isActive } = await this.state(name, options);
    if (!isActive) throw new AgentError('service.failed', { problem: `systemctl reload ${name}: Unit is not active` });
    this.reloads.push(name);
    this.onReload(name);
  }

  #begin(unit: Unit, endsAt: number): void {
    this.#counter += 1n;
    unit.startedAt = this.#counter;
    unit.endsAt = endsAt;
  }

  /** What the time has done to it. */
  #pass(unit: Unit): void {
    if (unit.endsAt === undefined || this.#clock.monotonic() < unit.endsAt) return;
    if (unit.again) this.#begin(unit, Number.POSITIVE_INFINITY);
    else unit.endsAt = undefined;
  }

  #check({ signal }: CallOptions): void {
    signal.throwIfAborted();
    if (this.#unmanaged) throw new AgentError('service.unmanaged', { problem: 'systemd does not run here' });
  }
}
