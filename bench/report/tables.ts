import type { Case } from '../rig/cases.ts';
import type { Peer } from '../rig/peers.ts';
import { cpuPerOperation, ratios, type Sample, type Spread, samplesOf, spreadOf } from '../rig/results.ts';

/** What was measured, and of whom. */
export interface Results {
  readonly cases: readonly Case[];
  readonly peers: readonly Peer[];
  readonly samples: readonly Sample[];
}

type Row = readonly string[];

export function markdownTable(head: Row, rows: readonly Row[]): string {
  const rule = head.map((_, index) => (index === 0 ? '---' : '---:'));
  return [head, rule, ...rows].map((row) => `| ${row.join(' | ')} |\n`).join('');
}

/** How often ours is what the others are, a row per case and peer. */
export function comparison({ cases, peers, samples }: Results): string {
  const ours = peers.filter((peer) => peer.ours);
  const others = peers.filter((peer) => !peer.ours && peer.threads > 0);
  const rows = cases.flatMap((each) =>
    others.flatMap((other): Row[] => {
      if (samplesOf(samples, each.name, other.name).length === 0) return [];
      const cells = ours.map((own) => formatRatio(spreadOf(ratios(samples, each.name, own.name, other.name))));
      const better = each.higherIsBetter ? 'more is better' : 'less is better';
      return [[`${each.name} (${each.unit}, ${better})`, other.title, ...cells]];
    }),
  );
  return markdownTable(['case', 'beside', ...ours.map(({ title }) => title)], rows);
}

/** All that is known of one case, a row per peer. */
export function caseTable({ peers, samples }: Results, each: Case): string {
  const reference = peers.find(({ name }) => name === each.reference)?.title ?? each.reference;
  const rows = peers.flatMap(({ name, title }): Row[] => {
    const own = samplesOf(samples, each.name, name);
    if (own.length === 0) return [];
    const column = (read: (sample: Sample) => number | undefined) =>
      formatSpread(spreadOf(own.flatMap((one) => read(one) ?? [])));
    return [
      [
        title,
        column(({ value }) => value),
        formatRatio(spreadOf(ratios(samples, each.name, name, each.reference))),
        name === 'direct' ? '-' : column(cpuPerOperation),
        column(({ p50Us }) => p50Us),
        column(({ p99Us }) => p99Us),
        String(own.reduce((sum, { errors = 0 }) => sum + errors, 0)),
      ],
    ];
  });
  const cpu = each.unit === 'Gbit/s' ? 'proxy CPU, s/GB' : 'proxy CPU, us/operation';
  return markdownTable(['peer', each.unit, `/ ${reference}`, cpu, 'p50, us', 'p99, us', 'errors'], rows);
}

export function disturbed({ samples }: Results, limit: number): readonly Sample[] {
  return samples.filter(({ foreignCores }) => foreignCores >= limit);
}

function formatRatio(spread: Spread | undefined): string {
  if (spread === undefined) return '-';
  const { median, least, most } = spread;
  return `**${median.toFixed(2)}** (${least.toFixed(2)}-${most.toFixed(2)})`;
}

function formatSpread(spread: Spread | undefined): string {
  return spread === undefined
    ? '-'
    : `${formatNumber(spread.median)} (${formatNumber(spread.least)}-${formatNumber(spread.most)})`;
}

/** Three digits that count; more would be noise. */
export function formatNumber(value: number): string {
  if (Math.abs(value) >= 9_995) return `${(value / 1_000).toFixed(value >= 99_950 ? 0 : 1)}k`;
  if (Math.abs(value) >= 99.95) return value.toFixed(0);
  return value.toFixed(Math.abs(value) >= 9.995 ? 1 : Math.abs(value) >= 0.9995 ? 2 : 3);
}
