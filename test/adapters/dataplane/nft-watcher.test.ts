import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addonPath, loadAddon } from '../../../src/adapters/dataplane/addon.js';

const namespace = `holdfast-nftwatch-${process.pid}`;

/** In a process of its own in the namespace; returns what it prints. */
function inside(script: string): unknown {
  const prelude = `
    const { execFileSync } = require('node:child_process');
    const { setTimeout: wait } = require('node:timers/promises');
    const { NftSocket, NftWatcher } = require(${JSON.stringify(addonPath(process.env.HOLDFAST_ADDON))});
    const own = new NftSocket();
    const told = [];
    let next = Promise.withResolvers();
    const hear = (changes) => { told.push(changes); next.resolve(); next = Promise.withResolvers(); };
    const nft = (text) => execFileSync('nft', ['-f', '-'], { input: text });
    setInterval(() => {}, 1000);
    // The module is sanitized in some runs, other programs are not.
    delete process.env.LD_PRELOAD;
    (async () => { ${script} })().then((value) => { console.log(JSON.stringify(value)); process.exit(); });`;
  return JSON.parse(execFileSync('ip', ['netns', 'exec', namespace, process.execPath, '-e', prelude], { encoding: 'utf8' }));
}

describe.skipIf(process.getuid?.() !== 0)('changes of the ruleset by others', () => {
  beforeAll(() => execFileSync('ip', ['netns', 'add', namespace]));
  afterAll(() => execFileSync('ip', ['netns', 'del', namespace]));

  test('are told with their table and who did it, ours are not', () => {
    expect(
      inside(`
        const watcher = new NftWatcher(own.port(), hear);
        own.apply([{ kind: 'table', table: 'ours' }]);
        await wait(100);
        const quiet = told.length;
        nft('add table inet theirs; add set inet theirs s { type ipv4_addr; }; add chain inet ours c');
        await next.promise;
        watcher.close();
        watcher.close();
        nft('add table inet more');
        await wait(100);
        const [{ tables, overrun }] = told;
        return { quiet, calls: told.length, overrun, tables: tables.map(({ port, process, ...rest }) => ({ ...rest, known: port > 0 && process > 0 })) };`),
    ).toEqual({
      quiet: 0,
      calls: 1,
      overrun: false,
      tables: [
        { family: 1, table: 'theirs', command: 'nft', known: true },
        { family: 1, table: 'ours', command: 'nft', known: true },
      ],
    });
  });

  test('are not told while it pauses, but the generation tells; a flush is told after it', () => {
    expect(
      inside(`
        const watcher = new NftWatcher(own.port(), hear);
        watcher.pause();
        const before = own.generation();
        own.apply([{ kind: 'table', table: 'load' }]);
        nft('add table inet unheard');
        await wait(100);
        const paused = { calls: told.length, batches: own.generation() - before };
        watcher.resume();
        execFileSync('nft', ['flush', 'ruleset']);
        await next.promise;
        return { paused, tables: told.flatMap(({ tables }) => tables.map(({ table }) => table)).sort() };`),
    ).toEqual({ paused: { calls: 0, batches: 2 }, tables: expect.arrayContaining(['load', 'unheard']) });
  });

  test('200,000 events while the main thread is busy are one call, or a few', () => {
    const seen = inside(`
      const watcher = new NftWatcher(own.port(), hear);
      nft('add table inet big; add set inet big s { type ipv4_addr; }');
      await next.promise;
      told.length = 0;
      const other = new NftSocket();
      const packed = new Uint8Array(new Uint32Array(100000).map((_, index) => index).buffer);
      const elements = { table: 'big', set: 's', keyBytes: 4, packed };
      other.apply([{ kind: 'add-elements', ...elements }]);
      other.apply([{ kind: 'delete-elements', ...elements }]);
      const until = Date.now() + 500;
      while (Date.now() < until);
      while (told.length === 0) await next.promise;
      await wait(200);
      return { calls: told.length, tables: [...new Set(told.flatMap(({ tables }) => tables.map(({ table }) => table)))] };`);
    expect(seen).toEqual({ calls: expect.any(Number), tables: ['big'] });
    expect((seen as { calls: number }).calls).toBeLessThan(20);
  });

  test('a process that watches ends by itself, with a watcher that nobody closed and a change that nobody took', () => {
    const script = `
      const { NftSocket, NftWatcher } = require(${JSON.stringify(addonPath(process.env.HOLDFAST_ADDON))});
      new NftWatcher(0, () => {});
      new NftSocket().apply([{ kind: 'table', table: 'last' }]);
      const until = Date.now() + 100;
      while (Date.now() < until);
      const { Worker } = require('node:worker_threads');
      new Worker(\`const { NftWatcher } = require(\${JSON.stringify(${JSON.stringify(addonPath(process.env.HOLDFAST_ADDON))})}); new NftWatcher(0, () => {});\`, { eval: true });`;
    execFileSync('ip', ['netns', 'exec', namespace, process.execPath, '-e', script], { timeout: 20_000 });
  });
});

test('wrong arguments', () => {
  const { NftWatcher } = loadAddon();
  expect(() => Reflect.construct(NftWatcher, [-1, () => {}])).toThrow(
    new TypeError('ownPort must be an integer from 0 to 4294967295'),
  );
  expect(() => Reflect.construct(NftWatcher, [0])).toThrow(new TypeError('onChange must be a function'));
});
