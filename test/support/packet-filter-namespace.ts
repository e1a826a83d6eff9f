import type { PacketFilter } from '../../src/ports/dataplane/packet-filter.js';
import type { NamespaceChild } from './namespace-child.js';

/** The real one, in another process; what it tells is asked for every 10 ms. */
export async function packetFilterIn(child: NamespaceChild, owner = true): Promise<PacketFilter> {
  await child.run(async ({ addon, load, state }, isOwner) => {
    const { NftPacketFilter } = await load('src/adapters/dataplane/nft-packet-filter.ts');
    state.filter = new NftPacketFilter(addon, { owner: isOwner });
    state.foreign = 0;
    state.options = { signal: new AbortController().signal };
  }, owner);
  let told = 0;
  let watch: NodeJS.Timeout | undefined;
  return {
    open: (onForeign) => {
      watch = setInterval(async () => {
        const now = await child.run(({ state }) => state.foreign as number).catch(() => told);
        if (now !== told) onForeign();
        told = now;
      }, 10);
      return child.run(({ state }) => state.filter.open(() => state.foreign++, state.options));
    },
    apply: (plan) => child.run(({ state }, given) => state.filter.apply(given, state.options), plan),
    replace: (batch) => child.run(({ state }, given) => state.filter.replace(given, state.options), batch),
    dump: () => child.run(({ state }) => state.filter.dump(state.options)),
    foreignChains: () => child.run(({ state }) => state.filter.foreignChains(state.options)),
    close: () => {
      clearInterval(watch);
      return child.run(({ state }) => state.filter.close());
    },
    remove: () => {
      clearInterval(watch);
      return child.run(({ state }) => state.filter.remove(state.options));
    },
  };
}
