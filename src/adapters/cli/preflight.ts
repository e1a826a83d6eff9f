import { isFit } from '../../domain/preflight/judge.js';
import type { CheckResult } from '../../domain/preflight/model.js';
import { type Console, paint, table } from './output.js';

/** A row for each check, below it what to do, and a sentence at the end. */
export function describePreflight(console: Console, results: readonly CheckResult[]): string {
  const rows = table(
    ['CHECK', 'STATE', 'FINDING'],
    results.map(({ check, state, finding }) => [check, state, finding]),
  );
  const remedies = results.flatMap((result) =>
    'remedy' in result ? [`${result.check} (${result.state}): ${result.remedy}\n`] : [],
  );
  const todo = remedies.length === 0 ? '' : `\nwhat to do\n${remedies.map((line) => `  ${line}`).join('')}`;
  const verdict = isFit(results)
    ? paint(console, 'green', 'this machine can become a node')
    : paint(console, 'red', 'this machine cannot become a node yet');
  return `${rows}${todo}\n${verdict}\n`;
}
