import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { basename, join } from 'node:path';

// node chart-repository.mjs FOLDER ADDRESS: serves the files of a folder over TLS, and prints its port.
const [folder, address] = process.argv.slice(2);
const pair = { cert: readFileSync(join(folder, 'server.crt')), key: readFileSync(join(folder, 'server.key')) };
const server = createServer(pair, (request, response) => {
  try {
    response.end(readFileSync(join(folder, basename(request.url))));
  } catch {
    response.writeHead(404).end();
  }
});
server.listen(0, address, () => process.stdout.write(`${server.address().port}\n`));
