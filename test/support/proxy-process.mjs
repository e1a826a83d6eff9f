// A proxy in a process of its own, whose limits can be small. Arguments: the addon, a table delta as base64. Says its port, then at each
// line of input what it is like, each as a line of JSON.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const [addonFile, delta] = process.argv.slice(2);
const { Proxy: NativeProxy } = createRequire(import.meta.url)(addonFile);
const proxy = new NativeProxy({ threads: 2 }, () => {});
const [result] = await proxy.apply(Buffer.from(delta, 'base64'));
console.log(JSON.stringify(result));
for await (const _ of createInterface({ input: process.stdin })) {
  const { user, system } = process.cpuUsage();
  console.log(JSON.stringify({ cpuUs: user + system, ...proxy.info() }));
}
await proxy.stop(0);
