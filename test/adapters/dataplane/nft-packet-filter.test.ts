import { execFileSync } from 'node:child_process';
import { describe } from 'vitest';
import { packetFilterContract } from '../../contract/packet-filter.contract.js';
import { NamespaceChild } from '../../support/namespace-child.js';
import { packetFilterIn } from '../../support/packet-filter-namespace.js';

let made = 0;

describe.skipIf(process.getuid?.() !== 0)('in a namespace', () => {
  packetFilterContract('nf_tables', async () => {
    const name = `holdfast-filter-${process.pid}-${made++}`;
    execFileSync('ip', ['netns', 'add', name]);
    const nft = (text: string) => execFileSync('ip', ['netns', 'exec', name, 'nft', '-f', '-'], { input: text });
    const children: NamespaceChild[] = [];
    return {
      filter: (owner) => {
        const child = new NamespaceChild(name);
        children.push(child);
        return packetFilterIn(child, owner);
      },
      flush: async () => void nft('flush ruleset'),
      addChain: async ({ table, chain, hook, priority, policy }) =>
        void nft(`table ${table} { chain ${chain} { type filter hook ${hook} priority ${priority}; policy ${policy}; }; }`),
      end: async () => {
        for (const child of children) await child.stop();
        execFileSync('ip', ['netns', 'del', name]);
      },
    };
  });
});
