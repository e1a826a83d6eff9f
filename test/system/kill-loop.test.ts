import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Daemon, runCli, temporaryFolder } from './support/daemon.js';
import { serviceManifest } from './support/manifests.js';

const ROUNDS = 50;

interface Listing {
  readonly items: readonly { readonly metadata: { readonly name: string }; readonly status: { readonly vip: string } }[];
}

/** Applies service after service until the daemon is gone; what was acknowledged is in `acknowledged` with its revision. */
async function applyUntilGone(dataDir: string, round: number, acknowledged: Map<string, number>): Promise<void> {
  for (let index = 0; ; index++) {
    const name = `s-${round}-${index}`;
    const manifest = serviceManifest({ name, port: 20_000, endpoints: [] });
    const { code, stdout } = await runCli(['apply', '-f', '-', '-o', 'json', '--data-dir', dataDir], manifest);
    if (code !== 0) return;
    acknowledged.set(name, JSON.parse(stdout).revision);
  }
}

test(`kill -9 ${ROUNDS} times while applies run: what was acknowledged is there, no revision repeats, addresses and node stay`, async () => {
  await using folder = await temporaryFolder();
  const dataDir = join(folder.path, 'data');
  const acknowledged = new Map<string, number>();
  const vips = new Map<string, string>();
  const identities = new Set<string>();
  for (let round = 0; round < ROUNDS; round++) {
    const daemon = new Daemon(dataDir);
    await daemon.start();
    identities.add(await readFile(join(dataDir, 'node-identity.json'), 'utf8'));
    const clients = [0, 1].map((client) => applyUntilGone(dataDir, round * 2 + client, acknowledged));
    await sleep(400 + 40 * (round % 20));
    await daemon.stop('SIGKILL');
    await Promise.all(clients);
    if (round % 5 !== 4) continue;
    const check = new Daemon(dataDir);
    await check.start();
    const { items } = await check.json<Listing>('get', 'services');
    await check.stop('SIGKILL');
    const present = new Map(items.map(({ metadata, status }) => [metadata.name, status.vip]));
    for (const name of acknowledged.keys()) expect(present.has(name), `${name} is there`).toBe(true);
    for (const [name, vip] of vips) expect(present.get(name), `the address of ${name}`).toBe(vip);
    for (const [name, vip] of present) vips.set(name, vip);
    expect(new Set(present.values()).size).toBe(present.size);
  }
  expect(acknowledged.size).toBeGreaterThan(ROUNDS);
  expect(new Set(acknowledged.values()).size).toBe(acknowledged.size);
  expect(identities.size).toBe(1);
});
