import { egressChecks } from './egress-checks.js';
import { machineChecks } from './machine-checks.js';
import type { CheckResult, PreflightFacts, Wanted } from './model.js';
import { networkChecks } from './network-checks.js';
import { systemChecks } from './system-checks.js';

/** Every check, in the order of the answer. */
export const preflightChecks = [...systemChecks, ...machineChecks, ...networkChecks, ...egressChecks] as const;

/** One result for each check, whatever came of the others. @param skip names of checks, none of them fatal */
export function judgeMachine(facts: PreflightFacts, wanted: Wanted, skip: ReadonlySet<string>): readonly CheckResult[] {
  return preflightChecks.map(({ name, judge }) =>
    skip.has(name) ? { check: name, state: 'skipped', finding: 'left out by --skip' } : { check: name, ...judge(facts, wanted) },
  );
}

/** Why these cannot be left out; undefined when they can. */
export function refuseSkip(names: readonly string[]): string | undefined {
  for (const name of names) {
    const check = preflightChecks.find((other) => other.name === name);
    if (check === undefined)
      return `there is no check ${JSON.stringify(name)}; the checks are ${preflightChecks.map((other) => other.name).join(', ')}`;
    if (check.isFatal) return `check ${name} cannot be left out`;
  }
  return undefined;
}

/** Whether nothing speaks against the machine: what is unknown does not. */
export function isFit(results: readonly CheckResult[]): boolean {
  return results.every(({ state }) => state !== 'problem');
}
