/** An API server of Kubernetes as far as nodes and balancers ask: every node is a ready control plane, and everything else is its name. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';

const [name, cert, key] = process.argv.slice(2);
const ready = JSON.stringify({ kind: 'Node', spec: {}, status: { conditions: [{ type: 'Ready', status: 'True' }] } });
const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (request, response) => {
  response.end(request.url.startsWith('/api/v1/nodes/') ? ready : name);
});
server.listen(6443, '::', () => process.send(server.address().port));
process.on('disconnect', () => process.exit(0));
