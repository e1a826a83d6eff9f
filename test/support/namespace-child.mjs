// A process in a network namespace that carries out functions of the test: they come as text, with their arguments.
import dgram from 'node:dgram';
import { createRequire } from 'node:module';
import net from 'node:net';

// Functions that come as text cannot import anything themselves.
const load = (path) => import(new URL(`../../${path}`, import.meta.url));
const context = { addon: createRequire(import.meta.url)(process.argv[2]), dgram, net, load, state: {} };

// Whoever asked may be gone by now.
const tell = (answer) => process.connected && process.send(answer, () => {});

process.on('message', async ({ id, source, args }) => {
  try {
    const call = new Function(`return (${source})`)();
    tell({ id, value: await call(context, ...args) });
  } catch (error) {
    tell({ id, error: error instanceof Error ? error : new Error(String(error)) });
  }
});
process.on('disconnect', () => process.exit());
