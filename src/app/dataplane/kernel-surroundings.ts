import { type NeededSysctl, neededSysctls, wrongSysctls } from '../../domain/dataplane/sysctls.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ForeignChain, PacketFilter } from '../../ports/dataplane/packet-filter.js';
import type { Sysctls } from '../../ports/dataplane/sysctls.js';
import type { StatusProblem } from '../../ports/driving/operations.js';

export interface SurroundingsParts {
  readonly filter: Pick<PacketFilter, 'foreignChains'>;
  readonly sysctls: Sysctls;
  /** Whether they are set, or only named. */
  readonly manageSysctls: boolean;
  readonly now: () => number;
}

/** What is not ours and decides nevertheless whether rules carry connections: sysctls, and chains of others. */
export class KernelSurroundings {
  readonly #parts: SurroundingsParts;
  readonly #since = new Map<string, number>();
  #set = new Set<string>();
  #problems: readonly StatusProblem[] = [];

  constructor(parts: SurroundingsParts) {
    this.#parts = parts;
  }

  problems(): readonly StatusProblem[] {
    return this.#problems;
  }

  /** Says which sysctls somebody has set back since they were set here. */
  async look(options: CallOptions): Promise<readonly NeededSysctl[]> {
    const { filter, manageSysctls, sysctls } = this.#parts;
    const wrong = wrongSysctls(
      await sysctls.read(
        neededSysctls.map(({ name }) => name),
        options,
      ),
    );
    const blocking = (await filter.foreignChains(options)).filter(blocks);
    const problems = blocking.map(chainProblem);
    if (manageSysctls && wrong.length > 0) await sysctls.set(new Map(wrong.map(({ name, value }) => [name, value])), options);
    if (!manageSysctls) problems.push(...wrong.map(sysctlProblem));
    this.#note(problems);
    const reset = wrong.filter(({ name }) => this.#set.has(name));
    if (manageSysctls) this.#set = new Set([...this.#set, ...wrong.map(({ name }) => name)]);
    return reset;
  }

  #note(problems: readonly Omit<StatusProblem, 'since'>[]): void {
    const reasons = new Set(problems.map(({ reason }) => reason));
    for (const reason of this.#since.keys()) if (!reasons.has(reason)) this.#since.delete(reason);
    this.#problems = problems.map((problem) => {
      const since = this.#since.get(problem.reason) ?? this.#parts.now();
      this.#since.set(problem.reason, since);
      return { ...problem, since };
    });
  }
}

/** Whatever we accept: the packet goes through every chain of its hook. */
function blocks({ hook, policy }: ForeignChain): boolean {
  return policy === 'drop' && ['prerouting', 'input', 'forward', 'output', 'postrouting'].includes(hook);
}

function chainProblem({ table, chain, hook }: ForeignChain): Omit<StatusProblem, 'since'> {
  return {
    subject: 'kernel path',
    reason: `table ${table}, chain ${chain} drops in ${hook} what no rule of it accepts`,
    remedy: 'let connections to service addresses and to endpoints through there; `nft list table` shows its rules',
  };
}

function sysctlProblem({ name, value, without }: NeededSysctl): Omit<StatusProblem, 'since'> {
  return {
    subject: 'kernel path',
    reason: `${name} is not ${value}: ${without}`,
    remedy: `sysctl -w ${name}=${value}, or dataplane.manageSysctls: on`,
  };
}
