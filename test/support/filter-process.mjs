// In a network namespace: carries out what its parent says to an NftSocket, one message at a time. `{ "bytes": [1] }` is a Uint8Array.
import { createRequire } from 'node:module';

const [, , addon] = process.argv;
const { NftSocket } = createRequire(import.meta.url)(addon);
const socket = new NftSocket();

const given = (value) =>
  JSON.parse(JSON.stringify(value), (_, part) => (Array.isArray(part?.bytes) ? Uint8Array.from(part.bytes) : part));
const told = (value) =>
  JSON.parse(JSON.stringify(value, (_, part) => (part instanceof Uint8Array ? { bytes: [...part] } : part)) ?? 'null');

process.on('message', ({ method, args }) => {
  try {
    process.send({ value: told(socket[method](...given(args))) });
  } catch ({ code, message, operation }) {
    process.send({ error: { code, message, operation } });
  }
});
process.send({ value: 'ready' });
