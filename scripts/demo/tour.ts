import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import { type Stage, setStage } from './stage.ts';

const REQUESTS = 300;
const KILL_AFTER = REQUESTS / 2;
const WEIGHTED_REQUESTS = 200;

interface Report {
  requests: number;
  failed: number;
  /** Requests by the server that answered. */
  spread: Record<string, number>;
  vip: string;
  address: string;
  /** The server that was killed in the middle. */
  killed: string;
  /** Requests by server after gamma's weight was set to 3. */
  weighted: Record<string, number>;
  services: number;
  metrics: Record<string, number>;
  stopped: 'clean' | 'not clean';
}

/** The tour of the README: walks it, prints a report, leaves nothing behind. */
export async function tour(output: 'text' | 'json'): Promise<number> {
  const stage = await setStage({ quiet: true });
  try {
    const report = await walk(stage);
    report.stopped = await stopDaemon(stage);
    process.stdout.write(output === 'json' ? `${JSON.stringify(report)}\n` : describe(report));
    return report.failed === 0 && report.stopped === 'clean' ? 0 : 1;
  } finally {
    await stage.stop();
  }
}

async function walk(stage: Stage): Promise<Report> {
  const service = JSON.parse(await stage.cli('get', 'service', 'hello', '--output', 'json'));
  const address: string = service.status.ports[0].listen;
  const { spread, failed } = await load(address, REQUESTS, async (done) => {
    if (done === KILL_AFTER) await kill(stage.backends[1]);
  });
  const manifest = await readFile(stage.manifest, 'utf8');
  await writeFile(stage.manifest, manifest.replace(`port: ${stage.ports[2]} }`, `port: ${stage.ports[2]}, weight: 3 }`));
  await stage.cli('apply', '-f', stage.manifest);
  const weighted = await load(address, WEIGHTED_REQUESTS, async () => {});
  const top = JSON.parse(await stage.cli('top', '--once', '--output', 'json'));
  return {
    requests: REQUESTS + WEIGHTED_REQUESTS,
    failed: failed + weighted.failed,
    spread,
    vip: service.status.vip,
    address,
    killed: 'beta',
    weighted: weighted.spread,
    services: top.services.length,
    metrics: await metrics(stage),
    stopped: 'not clean',
  };
}

/** Resolves when the process is gone: until then the kernel still takes connections for it. */
async function kill(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

/** One request after the other, each on a connection of its own, so that every one is balanced anew. */
async function load(address: string, count: number, after: (done: number) => Promise<void>) {
  const spread: Record<string, number> = {};
  let failed = 0;
  for (let done = 1; done <= count; done++) {
    try {
      const name = (await request(`http://${address}/`)).replace(/^hello from /, '').trim();
      spread[name] = (spread[name] ?? 0) + 1;
    } catch {
      failed++;
    }
    await after(done);
  }
  return { spread, failed };
}

function request(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = get(url, { agent: false, timeout: 5_000 }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        body += chunk;
      });
      response.on('end', () =>
        response.statusCode === 200 ? resolve(body) : reject(new Error(`status ${response.statusCode}`)),
      );
      response.on('error', reject);
    });
    call.on('timeout', () => call.destroy(new Error('no answer in 5 s')));
    call.on('error', reject);
  });
}

async function metrics(stage: Stage): Promise<Record<string, number>> {
  const status = JSON.parse(await stage.cli('status', '--output', 'json'));
  const text = await request(`http://${status.metricsListen}/metrics`);
  const wanted = /^(holdfast_(?:connections_total|dial_failures_total|log_revision)\S*) (\S+)$/gm;
  return Object.fromEntries([...text.matchAll(wanted)].map(([, name = '', value]) => [name, Number(value)]));
}

async function stopDaemon(stage: Stage): Promise<Report['stopped']> {
  const exited = once(stage.daemon, 'exit');
  stage.daemon.kill('SIGTERM');
  const [code] = await exited;
  return code === 0 ? 'clean' : 'not clean';
}

function describe(report: Report): string {
  const counts = (spread: Record<string, number>) =>
    Object.entries(spread)
      .map(([name, count]) => `${name} ${count}`)
      .join(', ');
  return `The service hello has the address ${report.vip} and answers on ${report.address}.
${REQUESTS} requests, ${report.killed} killed in the middle: ${counts(report.spread)}.
Then gamma's weight set to 3 by apply, ${WEIGHTED_REQUESTS} requests: ${counts(report.weighted)}.
${report.failed} of ${report.requests} requests failed. Metrics showed ${Object.keys(report.metrics).length} series of them.
The daemon stopped: ${report.stopped}.
`;
}
