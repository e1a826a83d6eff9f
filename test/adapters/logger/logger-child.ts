import { openLogger } from '../../../src/adapters/logger/pino-logger.js';

// logger-child.ts COUNT: logs COUNT lines over some turns of the event loop, then says on stderr that it is still there.
const logger = openLogger({ level: 'info' }).child({ component: 'child' });
const count = Number(process.argv[2]);
for (let line = 0; line < count; line++) {
  logger.info('line', { line, password: 'hunter2' });
  if (line % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
}
process.stderr.write('still here\n');
