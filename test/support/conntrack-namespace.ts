import { execFileSync } from 'node:child_process';
import type { ConntrackFunctions } from '../../src/adapters/dataplane/conntrack-addon.js';
import { ipIn, NamespaceChild } from './namespace-child.js';

/** The addon's functions, carried out in another process. */
export function conntrackOf(child: NamespaceChild): ConntrackFunctions {
  return {
    listFlows: (...args) => child.run(({ addon }, ...given) => addon.listFlows(...given), ...args),
    removeFlows: (...args) => child.run(({ addon }, ...given) => addon.removeFlows(...given), ...args),
    markFlows: (...args) => child.run(({ addon }, ...given) => addon.markFlows(...given), ...args),
    challengeFlows: (...args) => child.run(({ addon }, ...given) => addon.challengeFlows(...given), ...args),
  };
}

/** A namespace whose loopback is tracked, and a process in it. */
export function trackedNamespace(name: string): { readonly child: NamespaceChild; readonly end: () => Promise<void> } {
  execFileSync('ip', ['netns', 'add', name]);
  ipIn(name, 'link', 'set', 'lo', 'up');
  // The kernel tracks connections where a rule asks for it.
  const rules =
    'add table inet t; add chain inet t c { type filter hook output priority 0; }; add rule inet t c ct state new counter';
  execFileSync('ip', ['netns', 'exec', name, 'nft', '-f', '-'], { input: rules });
  const child = new NamespaceChild(name);
  return {
    child,
    end: async () => {
      await child.stop();
      execFileSync('ip', ['netns', 'del', name]);
    },
  };
}
