import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Of package.json, two folders above the compiled file and the source alike. */
export const version: string = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')).version;
