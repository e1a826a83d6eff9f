import { BalancerKeeper } from '../../../src/app/loadbalancer/balancer-keeper.js';
import { endpoint } from '../../support/endpoint.js';
import { HaproxyMachine } from '../../support/haproxy-machine.js';

/** An agent that is killed before the call of a port with the given number; with too high a number it ends well. */
const [root = '', port, number, ...list] = process.argv.slice(2);
const parts = new HaproxyMachine(root, Number(port)).parts();
let calls = 0;

function deadly<T extends object>(target: T): T {
  return new Proxy(target, {
    get(_, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        if (calls++ === Number(number)) process.kill(process.pid, 'SIGKILL');
        return member.apply(target, args);
      };
    },
  });
}

const [config, runtime, units] = [deadly(parts.config), deadly(parts.runtime), deadly(parts.units)];
const keeper = new BalancerKeeper({ ...parts, config, runtime, units });
await keeper.bring(list.map(endpoint), { signal: new AbortController().signal });
