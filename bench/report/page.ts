import type { Case } from '../rig/cases.ts';
import { ratios, spreadOf } from '../rig/results.ts';
import { type Bar, barChart, type Panel } from './chart.ts';
import type { Machine } from './machine.ts';
import { caseTable, comparison, disturbed, formatNumber, markdownTable, type Results } from './tables.ts';

/** CPU that others used during a sample: beyond this its ratio means little. */
const DISTURBED_CORES = 0.15;

export interface PageFacts {
  readonly machine: Machine;
  readonly rounds: number;
  readonly seconds: number;
  readonly chart: string;
  readonly data: string;
}

/** docs/benchmarks/dataplane.md, whole. */
export function page(results: Results, { machine, rounds, seconds, chart, data }: PageFacts): string {
  const bad = disturbed(results, DISTURBED_CORES).length;
  const about = markdownTable(
    ['measured', ''],
    [
      ['date', machine.date],
      ['machine', machine.hardware],
      ['kernel', machine.kernel],
      ['versions', machine.versions.join('; ')],
      ['rounds', `${rounds} of ${seconds} s each; ${bad} of ${results.samples.length} samples disturbed by other processes`],
    ],
  );
  return `<!-- Written by \`npm run bench:dataplane\`; edit bench/report/page.ts instead. -->

# The data plane beside other proxies

**Read the ratios, not the absolute numbers.** Client, proxy and back end share the cores of one machine, so a rate says as much of
the machine and of the load generator as of the proxy. Peers take turns inside each round, and a ratio is taken between two runs of
the same round; the median of the rounds counts, with the least and the most in brackets. Below 1.10 a difference is noise. Where
cores are shared, CPU per operation is the honest figure beside the rate.

${about}
![Each peer relative to the reference of its case](${chart})

## Holdfast over each peer

1.30 is 30 % more than that peer; for memory, less than 1 is better.

${comparison(results)}
## Each case

${results.cases.map((each) => caseSection(results, each)).join('\n')}
## Where it does not win, and why

- **One connection that waits for each answer** (ping1), with \`busyPoll\`: of a round trip of 30 us, 22 are there without any proxy, the
  waking of client and back end among them. HAProxy adds 18 to 25 us, Holdfast with \`busyPoll\` 9: two reads and two writes, each write
  with the whole way through the kernel's network to its peer. Without any proxy a
  round trip is 1.8 to 2.1 times as fast as through HAProxy here.
- **One stream of bulk** beside an HAProxy that was tuned for it: both spend more than 93 % of their time in the kernel, 76 % in
  splice(2), in the same functions in the same shares; in 20 rounds of that case alone the median of both ratios, rate and CPU, was 1.01.
  \`perf record\` of either names no function that the other has not. Reading on through small reads instead of copying them changed nothing.
- **64 connections that wait for their answers**, one thread: four system calls a round trip on either side; what differs between rounds is
  more than what differs between peers. io_uring, which would save some of the calls, is not used: containers and hardened kernels deny it.

## How it is measured

Three network namespaces stand for three hosts: client, proxy, back end, joined by veth pairs and bridges (bench/rig/network.ts).
The load generator and the echo server are bench/rig/native; bulk is iperf3. HAProxy and nginx run with their defaults for TCP;
"tuned for bulk" forces splice with pipes of 1 MiB. Holdfast runs its own configuration path, from a manifest through the log to the
addon (bench/peer). CPU is that of the proxy's processes, from /proc. A sample waits for other processes to be quiet and is
repeated once when they were not; the idle case starts each peer anew every round, so that memory which an allocator keeps hides
nothing. The samples are in [${data}](${data}).

## To repeat it

    npm run bench:dataplane                # as root, on a machine that does nothing else
    npm run bench:dataplane -- --quick     # a smoke run; writes to build/bench only
    node bench/rig/run.ts --cases short --extra 'mine=COMMAND'    # a proxy of your own; bench/rig/peers.ts says what it is told
`;
}

function caseSection(results: Results, each: Case): string {
  return `### ${each.name}\n\n${each.title}; ${each.higherIsBetter ? 'more' : 'less'} is better.\n\n${caseTable(results, each)}`;
}

/** Every peer of every case over that case's reference. */
export function chartOf(results: Results): string {
  const panels = results.cases.map((each): Panel => {
    const reference = results.peers.find(({ name }) => name === each.reference)?.title ?? each.reference;
    const better = each.higherIsBetter ? 'longer is better' : 'shorter is better';
    return { title: `${each.title} (${better}; 1 is ${reference})`, bars: barsOf(results, each) };
  });
  return barChart('Each peer relative to the reference of its case, median of same-round ratios', panels);
}

function barsOf({ peers, samples }: Results, each: Case): readonly Bar[] {
  return peers.flatMap(({ name, title, ours }): Bar[] => {
    const spread = spreadOf(ratios(samples, each.name, name, each.reference));
    const value = spreadOf(
      samples.filter((one) => one.case === each.name && one.peer === name).flatMap((one) => one.value ?? []),
    );
    if (spread === undefined || value === undefined) return [];
    const { median, least, most } = spread;
    const note = `${median.toFixed(2)}  (${formatNumber(value.median)})`;
    return [{ label: title, note, value: median, least, most, emphasised: ours }];
  });
}
