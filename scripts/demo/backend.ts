// A small web server that says who it is: node backend.ts NAME PORT
import { createServer } from 'node:http';

const [name = 'backend', port = '0'] = process.argv.slice(2);
const server = createServer((_request, response) => response.end(`hello from ${name}\n`));
server.listen(Number(port), '127.0.0.1', () => process.send?.('listening'));
server.on('error', (error) => {
  console.error(`${name}: ${error.message}`);
  process.exit(1);
});
process.on('SIGTERM', () => process.exit(0));
process.on('disconnect', () => process.exit(0));
