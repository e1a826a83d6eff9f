import { createSocket } from 'node:dgram';
import { once } from 'node:events';

/** Free when asked. */
export async function freeUdpPort(): Promise<number> {
  const holder = createSocket('udp4').bind(0, '127.0.0.1');
  await once(holder, 'listening');
  const { port } = holder.address();
  holder.close();
  await once(holder, 'close');
  return port;
}
