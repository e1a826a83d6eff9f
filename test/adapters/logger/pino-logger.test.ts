import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { plainFields } from '../../../src/adapters/logger/log-fields.js';
import { PinoLogger } from '../../../src/adapters/logger/pino-logger.js';
import { terminalLine } from '../../../src/adapters/logger/terminal-line.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { loggerContract } from '../../contract/logger.contract.js';
import { FakeLogger } from '../../fakes/fake-logger.js';

function toMemory() {
  const lines: string[] = [];
  const logger = PinoLogger.to({ write: (line) => lines.push(line) }, 'trace');
  return { logger, lines, parsed: () => lines.map((line): Record<string, unknown> => JSON.parse(line)) };
}

loggerContract('fake', () => {
  const logger = new FakeLogger();
  return { logger, lines: () => logger.lines.map(({ level, message, fields }) => ({ level, message, ...fields })) };
});

loggerContract('pino', () => {
  const { logger, parsed } = toMemory();
  return { logger, lines: () => parsed().map(({ time: _, msg, ...rest }) => ({ message: msg, ...rest })) };
});

describe('PinoLogger', () => {
  test('writes one JSON line each', () => {
    const { logger, lines } = toMemory();
    logger.child({ subsystem: 'dns' }).warn('two\nlines', { port: 53 });
    expect(lines.map((line) => line.replace(/"time":"[^"]+"/, '"time":"T"'))).toEqual([
      '{"level":"warn","time":"T","subsystem":"dns","port":53,"msg":"two\\nlines"}\n',
    ]);
  });

  test('the time is ISO 8601 in UTC', () => {
    const { logger, parsed } = toMemory();
    logger.info('now');
    expect(parsed()[0]?.time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });
});

describe('plainFields', () => {
  const circular: Record<string, unknown> = { name: 'a' };
  circular.self = circular;
  const throwing = Object.defineProperty({}, 'bad', {
    enumerable: true,
    get: () => {
      throw new Error('no');
    },
  });

  test.each<{ name: string; fields: Record<string, unknown>; plain: unknown }>([
    { name: 'plain values', fields: { a: 1, b: 'x', c: true, d: null }, plain: { a: 1, b: 'x', c: true, d: null } },
    {
      name: 'what JSON lacks',
      fields: {
        big: 2n ** 70n,
        nan: Number.NaN,
        date: new Date(0),
        set: new Set([1]),
        map: new Map([['k', 1n]]),
        bytes: new Uint8Array(3),
      },
      plain: {
        big: '1180591620717411303424',
        nan: 'NaN',
        date: '1970-01-01T00:00:00.000Z',
        set: [1],
        map: { k: '1' },
        bytes: '[3 bytes]',
      },
    },
    {
      name: 'secrets by their names, at any depth',
      fields: {
        password: 'p',
        nested: { apiKey: 'k', list: [{ 'client-secret': 's' }], joinToken: { a: 1 } },
        headers: new Map([['Authorization', 'Bearer b']]),
        private_key: 'x',
        passage: 'shown',
        token: undefined,
      },
      plain: {
        password: '[redacted]',
        nested: { apiKey: '[redacted]', list: [{ 'client-secret': '[redacted]' }], joinToken: '[redacted]' },
        headers: { Authorization: '[redacted]' },
        private_key: '[redacted]',
        passage: 'shown',
      },
    },
    { name: 'cycles', fields: circular, plain: { name: 'a', self: { name: 'a', self: '[circular]' } } },
    { name: 'the same thing twice is no cycle', fields: { a: [1], b: [1] }, plain: { a: [1], b: [1] } },
    { name: 'what throws', fields: { throwing }, plain: { throwing: { unreadable: true } } },
    {
      name: 'what is too deep',
      fields: { a: { b: { c: { d: { e: { f: {} } } } } } },
      plain: { a: { b: { c: { d: { e: { f: '[deeper]' } } } } } },
    },
    { name: 'names of the line itself', fields: { level: 'x', time: 1, msg: 'y' }, plain: { level_: 'x', time_: 1, msg_: 'y' } },
  ])('$name', ({ fields, plain }) => {
    expect(JSON.parse(JSON.stringify(plainFields(fields)))).toEqual(plain);
  });

  test('errors with their facts and causes', () => {
    const cause = Object.assign(new Error('full'), { code: 'ENOSPC' });
    const error = new AgentError('log.corrupt', { problem: 'no room', token: 't' }, { cause });
    expect(plainFields({ error })).toEqual({
      error: {
        type: 'AgentError',
        message: error.message,
        code: 'log.corrupt',
        facts: { problem: 'no room', token: '[redacted]' },
        cause: { type: 'Error', message: 'full', code: 'ENOSPC', stack: expect.any(String) },
        stack: expect.any(String),
      },
    });
  });

  test('what happens without a fault of the program is told in a line: no places in the program', () => {
    const cause = Object.assign(new Error('full'), { code: 'ENOSPC' });
    const error = new AgentError('log.not_written', { problem: 'no room', token: 't' }, { cause });
    expect(plainFields({ error })).toEqual({
      error: {
        type: 'AgentError',
        message: error.message,
        code: 'log.not_written',
        facts: { token: '[redacted]' },
        cause: { type: 'Error', message: 'full', code: 'ENOSPC' },
      },
    });
  });

  test('nothing endless', () => {
    const { text, list } = plainFields({ text: 'x'.repeat(1_000_000), list: Array(1_000).fill(0) });
    expect(String(text)).toHaveLength(16_384 + '… (1000000 characters)'.length);
    expect(list).toHaveLength(101);
  });
});

describe('terminalLine', () => {
  const line = (fields: object) => JSON.stringify({ level: 'warn', time: '2025-01-01T12:30:01.250Z', msg: 'hello', ...fields });

  test.each<{ name: string; json: string; colour?: boolean; text: string }>([
    {
      name: 'fields',
      json: line({ a: 1, b: 'x y', c: { d: true } }),
      text: '12:30:01.250 WARN  hello a=1 b="x y" c={"d":true}\n',
    },
    {
      name: 'an error',
      json: line({ error: { message: 'no route', stack: 's' } }),
      text: '12:30:01.250 WARN  hello error="no route"\n',
    },
    { name: 'colour', json: line({}), colour: true, text: '12:30:01.250 \u001b[33mWARN \u001b[0m hello\n' },
    { name: 'no colour for what is usual', json: line({ level: 'info' }), colour: true, text: '12:30:01.250 INFO  hello\n' },
    {
      name: 'control characters',
      json: line({ msg: 'a\u001b[2Jb\nc', k: '\u0007\u009b', '\n': 1 }),
      text: '12:30:01.250 WARN  a\\u001b[2Jb\\u000ac k="\\u0007\\u009b" \\u000a=1\n',
    },
  ])('$name', ({ json, colour = false, text }) => {
    expect(terminalLine(json, { colour })).toBe(text);
  });
});

describe('openLogger, in a process of its own', () => {
  const child = (count: number) => {
    const hook = join(import.meta.dirname, '../../support/resolve-typescript.mjs');
    const script = join(import.meta.dirname, 'logger-child.ts');
    return spawn(process.execPath, ['--import', hook, script, String(count)], { stdio: ['ignore', 'pipe', 'pipe'] });
  };

  test('every line is out when the process ends', async () => {
    const logging = child(5_000);
    const [output, [code]] = await Promise.all([logging.stdout.toArray(), once(logging, 'exit')]);
    const lines = Buffer.concat(output).toString().trimEnd().split('\n');
    expect(code).toBe(0);
    expect(lines.map((line) => JSON.parse(line).line)).toEqual(Array.from({ length: 5_000 }, (_, index) => index));
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'info', component: 'child', password: '[redacted]' });
  });

  test('a reader that goes away ends the log, not the process', async () => {
    const logging = child(5_000);
    logging.stdout.destroy();
    const [errors, [code]] = await Promise.all([logging.stderr.toArray(), once(logging, 'exit')]);
    expect(Buffer.concat(errors).toString()).toBe('still here\n');
    expect(code).toBe(0);
  });
});
