import { type ExecFileSyncOptionsWithStringEncoding, execFileSync } from 'node:child_process';
import { addonPath } from '../../src/adapters/dataplane/addon.js';

const quiet: ExecFileSyncOptionsWithStringEncoding = { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] };

export function ip(space: string, ...args: string[]): string {
  return execFileSync('ip', ['-n', space, ...args], quiet);
}

/** Two hosts and a watcher on one link: a bridge in a space of its own. */
export class VipLink {
  readonly spaces: readonly [string, string, string];
  readonly #bridge: string;

  constructor(name: string) {
    const own = `vip-${name}-${process.pid}`;
    this.#bridge = `${own}-b`;
    this.spaces = [`${own}-0`, `${own}-1`, `${own}-2`];
    execFileSync('ip', ['netns', 'add', this.#bridge]);
    ip(this.#bridge, 'link', 'add', 'br0', 'type', 'bridge');
    ip(this.#bridge, 'link', 'set', 'br0', 'up');
    for (const [place, space] of this.spaces.entries()) {
      execFileSync('ip', ['netns', 'add', space]);
      const to = ['peer', 'name', `p${place}`, 'netns', this.#bridge];
      ip(space, 'link', 'add', 'eth0', 'type', 'veth', ...to);
      ip(this.#bridge, 'link', 'set', `p${place}`, 'master', 'br0', 'up');
      ip(space, 'link', 'set', 'lo', 'up');
      ip(space, 'link', 'set', 'eth0', 'up');
      ip(space, 'addr', 'add', `10.9.0.${place + 1}/24`, 'dev', 'eth0');
      ip(space, 'addr', 'add', `fd09::${place + 1}/64`, 'dev', 'eth0', 'nodad');
    }
  }

  close(): void {
    for (const space of [...this.spaces, this.#bridge]) execFileSync('ip', ['netns', 'del', space]);
  }
}

/** What a function of the addon returns in a space, in a process of its own; what it throws is thrown with its `code`. */
export function callIn(space: string, name: string, ...args: readonly unknown[]): unknown {
  const script = `
    const addon = require(${JSON.stringify(addonPath(process.env.HOLDFAST_ADDON))});
    try { process.stdout.write(JSON.stringify({ value: addon[${JSON.stringify(name)}](...${JSON.stringify(args)}) })); }
    catch (error) { process.stdout.write(JSON.stringify({ code: error.code ?? error.name, message: error.message })); }`;
  const text = execFileSync('ip', ['netns', 'exec', space, process.execPath, '-e', script], quiet);
  const said: unknown = JSON.parse(text);
  if (typeof said !== 'object' || said === null) throw new Error(text);
  if ('message' in said) throw Object.assign(new Error(String(said.message)), said);
  return 'value' in said ? said.value : undefined;
}
