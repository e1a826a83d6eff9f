import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type DataPath, manifestOf, orderOf } from './manifest.ts';
import { startNames } from './names.ts';
import { startNode } from './node.ts';

const PARENT_GONE_MS = 500;
const BLOCKED_MS = 200;
const UNBLOCKED_MS = 10;

const { values } = parseArgs({
  options: {
    path: { type: 'string', default: 'proxy' },
    threads: { type: 'string' },
    'busy-poll': { type: 'string' },
    'dns-threads': { type: 'string', default: '1' },
    'tcp-only': { type: 'boolean', default: false },
    blocked: { type: 'boolean', default: false },
  },
});

/** Aborts at a signal, and when whoever started this process is gone. */
function untilStopped(): AbortSignal {
  const stop = new AbortController();
  // More than once: a parent that dies with several threads sends its death signal for each.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort());
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && stop.abort(), PARENT_GONE_MS).unref();
  return stop.signal;
}

function dataPath(text: string): DataPath {
  if (text === 'proxy' || text === 'kernel') return text;
  throw new Error(`--path is proxy or kernel, not ${text}`);
}

/** What carries traffic must not notice. */
function block(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BLOCKED_MS);
}

/** Names, where a zone is asked for; nothing otherwise. */
async function serveNames(signal: AbortSignal): Promise<AsyncDisposable | undefined> {
  const { RIG_IP, RIG_DNS_PORT, RIG_ZONE } = process.env;
  if (RIG_DNS_PORT === undefined || RIG_ZONE === undefined) return undefined;
  return startNames({ listen: `${RIG_IP}:${RIG_DNS_PORT}`, zone: RIG_ZONE, threads: Number(values['dns-threads']) }, signal);
}

async function serve(signal: AbortSignal): Promise<void> {
  await using _names = await serveNames(signal);
  const order = orderOf(process.env, values['tcp-only'] ? ['tcp'] : ['tcp', 'udp']);
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-rig-'));
  try {
    const manifest = join(folder, 'rig.yaml');
    await writeFile(manifest, manifestOf(order));
    const tuning = {
      path: dataPath(values.path),
      ...(values.threads === undefined ? {} : { threads: values.threads }),
      ...(values['busy-poll'] === undefined ? {} : { busyPoll: values['busy-poll'] }),
    };
    await using _ = await startNode({ folder, manifest, address: order.address, tuning, signal });
    console.log('rig-peer is ready');
    if (values.blocked) setInterval(block, UNBLOCKED_MS);
    while (!signal.aborted) await sleep(2 ** 30, undefined, { signal }).catch(() => {});
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

try {
  await serve(untilStopped());
  process.exit(0);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
