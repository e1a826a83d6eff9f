import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addonPath, loadAddon } from '../../../src/adapters/dataplane/addon.js';
import type { NftOperation } from '../../../src/adapters/dataplane/nft-addon.js';
import type { RuleExpression } from '../../../src/domain/dataplane/ruleset.js';

const addon = loadAddon();
const namespace = `holdfast-nft-${process.pid}`;
const table = 'holdfast-test';

describe('what is no plan is refused before the kernel sees it', () => {
  const rule = (...expressions: unknown[]) => [{ kind: 'rule', table, chain: 'c', expressions }];
  const elements = (more: object) => [{ kind: 'add-elements', table, set: 's', keyBytes: 4, packed: new Uint8Array(4), ...more }];
  test.each<[string, unknown, string]>([
    ['no list', {}, 'plan must be an array'],
    ['no operation', [7], 'operation 0 must be an object'],
    ['no table', [{ kind: 'table' }], 'operation 0: table must be a string of 1 to 255 bytes without NUL'],
    [
      'a long name',
      [{ kind: 'table', table: 'x'.repeat(256) }],
      'operation 0: table must be a string of 1 to 255 bytes without NUL',
    ],
    ['NUL', [{ kind: 'remove', table, set: 'a\0b' }], 'operation 0: set must be a string of 1 to 255 bytes without NUL'],
    [
      'an unknown kind',
      [
        { kind: 'table', table },
        { kind: 'flow', table },
      ],
      'operation 1: kind must be table, chain, rule, set, counter, add-elements, delete-elements, flush or remove',
    ],
    ['flags', [{ kind: 'table', table, flags: -1 }], 'operation 0: flags must be an integer from 0 to 4294967295'],
    ['no expressions', [{ kind: 'rule', table, chain: 'c' }], 'operation 0: expressions must be an array'],
    ['an expression', rule('counter'), 'operation 0: an expression must be an array of its name and its values'],
    ['an empty one', rule([]), 'operation 0: an expression must be an array of its name and its values'],
    ['a value', rule(['log', null]), 'operation 0: a value must be a whole number, a string or a Uint8Array'],
    ['a fraction', rule(['meta-load', 0.5, 8]), 'operation 0: a value must be a whole number, a string or a Uint8Array'],
    [
      'a field',
      [{ kind: 'set', table, set: 's', keyType: 7, fields: [65] }],
      'operation 0: a field must be an integer from 1 to 64',
    ],
    ['packed', elements({ packed: [1] }), 'operation 0: packed must be a Uint8Array'],
    ['a key', elements({ keyBytes: 0 }), 'operation 0: keyBytes must be an integer from 1 to 64'],
    ['a chain', elements({ chains: [1] }), 'operation 0: chains must be strings'],
  ])('%s', (_name, plan, message) => {
    const socket = new addon.NftSocket();
    expect(() => Reflect.apply(socket.apply, socket, [plan])).toThrow(new TypeError(message));
    socket.close();
  });

  test('an expression that is none names its operation', () => {
    const socket = new addon.NftSocket();
    expect(() => socket.apply([{ kind: 'rule', table, chain: 'c', expressions: [['frobnicate']] }])).toThrow(
      expect.objectContaining({
        code: 'EINVAL',
        operation: 0,
        message: 'apply: there is no expression frobnicate: Invalid argument',
      }),
    );
    socket.close();
  });

  test('a dump of elements without their set, and a call after close', () => {
    const socket = new addon.NftSocket();
    expect(() => Reflect.apply(socket.dump, socket, ['element', table])).toThrow(
      new TypeError('elements are those of a table and a set, other kinds have no set'),
    );
    expect(() => Reflect.apply(socket.dump, socket, ['flow'])).toThrow(
      new TypeError('kind must be table, chain, rule, set, element or counter'),
    );
    socket.close();
    socket.close();
    expect(() => socket.generation()).toThrow(expect.objectContaining({ code: 'EBADF' }));
  });
});

/** 10.192.0.2:80 by a random slot to one of three ports of 127.0.0.1: expressions of each kind that a service's rules need. */
function services(): readonly NftOperation[] {
  const vip = [10, 192, 0, 2, 6, 0, 0, 0, 0, 80, 0, 0];
  const packed = [0, 1, 2].flatMap((slot) => [...vip, slot, 0, 0, 0, 127, 0, 0, 1, 0x46, 0x50 + slot, 0, 0]);
  const expressions: readonly RuleExpression[] = [
    ['meta-load', 15, 1],
    ['cmp', 1, 0, Uint8Array.of(2)],
    ['payload', 8, 1, 16, 4],
    ['meta-load', 16, 9],
    ['payload', 10, 2, 2, 2],
    ['numgen', 11, 3, 1, 0],
    ['lookup', 'ep4', 8, 8],
    ['nat', 1, 2, 8, 9],
  ];
  return [
    { kind: 'table', table },
    { kind: 'set', table, set: 'ep4', flags: 8, keyType: 0, fields: [4, 1, 2, 4], dataType: 1, dataBytes: 8 },
    { kind: 'add-elements', table, set: 'ep4', keyBytes: 16, dataBytes: 8, packed: Uint8Array.from(packed) },
    { kind: 'chain', table, chain: 'out', type: 'nat', hook: 3, priority: -110 },
    { kind: 'rule', table, chain: 'out', expressions },
  ];
}

/** In a process of its own in the namespace: the plan is made there, and 60 clients ask the service. */
const client = `
  const net = require('node:net');
  const { NftSocket } = require(process.argv[1]);
  const plan = JSON.parse(process.argv[2], (key, value) => (value && value.bytes ? Uint8Array.from(value.bytes) : value));
  const socket = new NftSocket();
  socket.apply(plan);
  const ask = () => new Promise((resolve, reject) => net.connect(80, '10.192.0.2').on('data', (text) => resolve(String(text))).on('error', reject));
  const servers = [0, 1, 2].map((slot) => net.createServer((peer) => peer.end(String(slot))).listen(0x4650 + slot, '127.0.0.1'));
  setImmediate(async () => {
    const answers = [];
    for (let i = 0; i < 60; i++) answers.push(await ask());
    const { chain, hook, priority } = socket.dump('chain', plan[0].table)[0];
    const elements = socket.dump('element', plan[0].table, 'ep4').length;
    socket.apply([{ kind: 'remove', table: plan[0].table }]);
    console.log(JSON.stringify({ answers: [...new Set(answers)].sort(), chain, hook, priority, elements, left: socket.dump('table').length }));
    process.exit();
  });`;

describe.skipIf(process.getuid?.() !== 0)('in a namespace', () => {
  const ip = (...args: string[]) => execFileSync('ip', args);
  beforeAll(() => {
    ip('netns', 'add', namespace);
    ip('-n', namespace, 'link', 'set', 'lo', 'up');
    ip('-n', namespace, 'route', 'add', 'local', '10.192.0.0/16', 'dev', 'lo');
  });
  afterAll(() => ip('netns', 'del', namespace));

  // One of three is never chosen in 60 once in 10^10.
  test('a plan carries connections to every endpoint, is read back, and goes', () => {
    const plan = JSON.stringify(services(), (_key, value) => (value instanceof Uint8Array ? { bytes: [...value] } : value));
    const path = addonPath(process.env.HOLDFAST_ADDON);
    const args = ['netns', 'exec', namespace, process.execPath, '-e', client, path, plan];
    expect(JSON.parse(execFileSync('ip', args, { encoding: 'utf8' }))).toEqual({
      answers: ['0', '1', '2'],
      chain: 'out',
      hook: 3,
      priority: -110,
      elements: 3,
      left: 0,
    });
  });
});
