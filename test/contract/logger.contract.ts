import { describe, expect, test } from 'vitest';
import type { Logger } from '../../src/ports/logger.js';

type Line = Readonly<Record<string, unknown>>;

/** Every Logger must pass. `make` gives one that logs everything, and what it has logged. */
export function loggerContract(
  name: string,
  make: () => { readonly logger: Logger; readonly lines: () => readonly Line[] },
): void {
  describe(`Logger: ${name}`, () => {
    test('logs messages with their levels and fields', () => {
      const { logger, lines } = make();
      logger.debug('a');
      logger.info('b', { port: 1 });
      logger.warn('c');
      logger.error('d');
      expect(lines()).toEqual([
        { level: 'debug', message: 'a' },
        { level: 'info', message: 'b', port: 1 },
        { level: 'warn', message: 'c' },
        { level: 'error', message: 'd' },
      ]);
    });

    test('children add their fields; the nearest wins', () => {
      const { logger, lines } = make();
      logger.child({ a: 1, b: 1 }).child({ b: 2, c: 2 }).info('x', { c: 3 });
      logger.info('y');
      expect(lines()).toEqual([
        { level: 'info', message: 'x', a: 1, b: 2, c: 3 },
        { level: 'info', message: 'y' },
      ]);
    });

    test('a level is set for the whole family, also for children that are there already', () => {
      const { logger, lines } = make();
      const child = logger.child({});
      logger.setLevel('warn');
      for (const each of [logger, child]) each.info('dropped');
      child.warn('x');
      child.setLevel('debug');
      logger.debug('y');
      logger.setLevel('fatal');
      logger.error('dropped');
      expect(lines().map(({ message }) => message)).toEqual(['x', 'y']);
    });
  });
}
