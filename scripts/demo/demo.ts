// `npm run demo`: three web servers behind one address, in the foreground; with `-- --once` the tour walks itself and ends.
import { parseArgs } from 'node:util';
import { foreground } from './foreground.ts';
import { tour } from './tour.ts';

const { values } = parseArgs({
  options: { once: { type: 'boolean', default: false }, output: { type: 'string', default: 'text' } },
});
if (values.output !== 'text' && values.output !== 'json') {
  console.error(`demo: --output is text or json, not ${values.output}`);
  process.exit(2);
}
process.exitCode = values.once ? await tour(values.output) : await foreground();
