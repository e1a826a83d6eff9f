import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KernelCompiler } from '../../../src/domain/dataplane/kernel-compiler.js';
import { defaultMarks } from '../../../src/domain/dataplane/kernel-model.js';
import type { L4Endpoint, L4Listener, ListenerId } from '../../../src/domain/dataplane/model.js';
import { type IpAddress, ipAddress, ipv4Range, type PortNumber } from '../../../src/domain/kernel/network.js';
import { FilterSpace } from '../../support/filter-space.js';

const range = ipv4Range('10.192.0.0/16');
if (range === undefined) throw new Error('no range');

function address(text: string): IpAddress {
  const parsed = ipAddress(text);
  if (parsed === undefined) throw new Error(`no address: ${text}`);
  return parsed;
}

function endpoint(text: string, weight = 1, local = true): L4Endpoint {
  return { address: address(text), port: 8080 as PortNumber, weight, tier: 0, local };
}

function listener(at: string, endpoints: readonly L4Endpoint[], changes: Partial<L4Listener> = {}): L4Listener {
  return {
    ...{
      id: `default/${at}/${changes.protocol ?? 'tcp'}` as ListenerId,
      address: address(at),
      port: 80 as PortNumber,
      protocol: 'tcp',
    },
    ...{ algorithm: 'random', affinityMs: 0, drainMs: 30_000, idleMs: 0, maxConnections: 0, acceptProxy: false, sendProxy: 0 },
    ...{ refuse: false, path: 'kernel', endpoints },
    ...changes,
  };
}

/** How many answers came from each back end; addresses stand for themselves. */
function spread(answers: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const answer of answers) {
    const [target = ''] = answer.split(' ');
    counts[target] = (counts[target] ?? 0) + 1;
  }
  return counts;
}

const three = (net: string) => [endpoint(`${net}2`), endpoint(`${net}3`), endpoint(`${net}4`)];

describe.skipIf(process.getuid?.() !== 0)('the compiled ruleset in a kernel', () => {
  let space: FilterSpace;
  const compiler = new KernelCompiler({ range, marks: defaultMarks });
  const put = async (...upsert: readonly L4Listener[]) => space.apply(compiler.update({ upsert, remove: [] }));

  beforeAll(async () => {
    space = await FilterSpace.make('rules');
    await space.load(compiler.load(new Map()));
  });
  afterAll(() => space[Symbol.asyncDispose]());

  test.each([
    ['IPv4', 'tcp', '10.192.0.2', '10.9.2.', '10.9.1.2'],
    ['IPv4', 'udp', '10.192.0.2', '10.9.2.', '10.9.1.2'],
    ['IPv6', 'tcp', 'fd96::2', 'fd09:2::', 'fd09:1::2'],
    ['IPv6', 'udp', 'fd96::2', 'fd09:2::', 'fd09:1::2'],
  ] as const)('%s %s: from another host, whose address is kept, and from the node', async (_, protocol, vip, net, client) => {
    await put(listener(vip, three(net), { protocol }));
    const answers = await space.ask('client', protocol, vip, 80, 60, client);
    expect(Object.keys(spread(answers)).sort()).toEqual([`${net}2`, `${net}3`, `${net}4`]);
    expect(new Set(answers.map((answer) => answer.split(' ')[1]))).toEqual(new Set([client]));
    const own = await space.ask('node', protocol, vip, 80, 60);
    expect(Object.keys(spread(own)).sort()).toEqual([`${net}2`, `${net}3`, `${net}4`]);
  });

  test('nft(8) can list it', async () => {
    expect(space.list()).toContain('chain services4');
  });
});
