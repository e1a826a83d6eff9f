import { describe, expect, test } from 'vitest';
import type { Terminal } from '../../../src/adapters/cli/terminal.js';
import type { RunOptions } from '../../support/cli-rig.js';
import { fleetCliRig } from '../../support/fleet-cli-rig.js';
import { base64, n1 } from '../../support/fleet-rig.js';

/** What is typed, when a test types it. */
class Keyboard implements AsyncIterable<Uint8Array> {
  readonly #typed: Uint8Array[] = [];
  #wake: () => void = () => {};
  #over = false;

  type(text: string): void {
    this.#typed.push(Buffer.from(text));
    this.#wake();
  }

  end(): void {
    this.#over = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const next = this.#typed.shift();
      if (next !== undefined) yield next;
      else if (this.#over) return;
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }
}

class FakeTerminal implements Terminal {
  raw: boolean[] = [];
  dimensions = { cols: 80, rows: 24 };
  #listener: (() => void) | undefined;

  size() {
    return this.dimensions;
  }

  onResize(listener: () => void): () => void {
    this.#listener = listener;
    return () => {
      this.#listener = undefined;
    };
  }

  setRaw(raw: boolean): void {
    this.raw.push(raw);
  }

  resize(cols: number, rows: number): void {
    this.dimensions = { cols, rows };
    this.#listener?.();
  }
}

async function rig() {
  const fleet = await fleetCliRig();
  const node = await fleet.connect();
  const keyboard = new Keyboard();
  const frames = () => node.stream.sent.filter(({ type }) => /STREAM/.test(type));
  const texts = () => frames().map(({ type, jsonB64 }) => `${type} ${Buffer.from(jsonB64, 'base64')}`);
  const start = async (args: readonly string[], options: RunOptions = {}) => {
    const ran = fleet.cli(['connect', ...args], { input: keyboard, ...options });
    await fleet.until(() => frames().length === 1);
    const tag = frames()[0]?.tag ?? '';
    const say = (type: string, content: string) => node.say(type, tag, base64(content));
    return { ran, say };
  };
  return { ...fleet, node, keyboard, frames, texts, start };
}

describe('holdfast connect', () => {
  test('carries standard input and output, and ends with what the service said', async () => {
    const { start, keyboard, texts, until, audit } = await rig();
    const { ran, say } = await start(['n1', 'shop/api:8080/sh?x=1', '--header', 'Authorization=Bearer a=b', '--header', 'x=']);
    expect(JSON.parse(texts()[0]?.slice('OPEN_STREAM '.length) ?? '')).toMatchObject({
      ...{ namespace: 'shop', name: 'api', port: 8080, path: '/sh?x=1', cols: 0 },
      headers: { authorization: 'Bearer a=b', x: '' },
    });
    keyboard.type('hello\n');
    await say('STREAM_OPENED', '{}');
    await until(() => texts().length === 2);
    keyboard.end();
    await say('STREAM_DATA', 'world\n');
    await say('STREAM_CLOSED', JSON.stringify({ reason: 'bye', error: false }));
    expect(await ran).toEqual({ code: 0, out: 'world\n', err: 'bye\n' });
    expect(texts().slice(1)).toEqual(['STREAM_DATA hello\n']);
    const lines = audit.records.map(({ who, type, tag, line, result }) => `${who} ${type} ${tag} ${line} ${result}`);
    const who = `local:${process.getuid?.()}`;
    expect(lines).toEqual([
      `${who} admin.open_session shop/api:8080 n1 decision allowed`,
      `${who} admin.open_session shop/api:8080 n1 outcome done`,
    ]);
  });

  test('ends with exit code 1 and the reason when the session failed', async () => {
    const { start } = await rig();
    const { ran, say } = await start(['n1', 'shop/api:80']);
    await say('STREAM_CLOSED', JSON.stringify({ reason: 'nothing listens there', error: true }));
    expect(await ran).toEqual({ code: 1, out: '', err: 'error: nothing listens there\n' });
  });

  test('in a terminal is raw while it is open, follows its size, and is left with Ctrl-]', async () => {
    const { start, keyboard, texts, until } = await rig();
    const terminal = new FakeTerminal();
    const { ran, say } = await start(['n1', 'shop/api:80'], { terminal });
    expect(texts()[0]).toContain('"cols":80,"rows":24');
    await say('STREAM_OPENED', '{}');
    await until(() => terminal.raw.length === 1);
    keyboard.type('\u0003');
    await until(() => texts().length === 2);
    terminal.resize(100, 30);
    await until(() => texts().length === 3);
    keyboard.type('last\u001dnever');
    expect(await ran).toEqual({ code: 0, out: '', err: 'connected to shop/api:80; Ctrl-] ends it\n' });
    await until(() => texts().length === 5);
    expect(texts().slice(1)).toEqual([
      'STREAM_DATA \u0003',
      'STREAM_RESIZE {"cols":100,"rows":30}',
      'STREAM_DATA last',
      'STREAM_CLOSE {}',
    ]);
    expect(terminal.raw).toEqual([true, false]);
  });

  test('SIGINT outside of a terminal closes the session', async () => {
    const { start, until, texts } = await rig();
    const abort = new AbortController();
    const { ran, say } = await start(['n1', 'shop/api:80'], { signal: abort.signal });
    await say('STREAM_OPENED', '{}');
    abort.abort(new Error('SIGINT'));
    expect(await ran).toEqual({ code: 1, out: '', err: 'error: interrupted\n' });
    await until(() => texts().at(-1) === 'STREAM_CLOSE {}');
  });

  test.each<[readonly string[], number, RegExp]>([
    [['n1', 'api:80'], 2, /expected NAMESPACE\/NAME:PORT/],
    [['n1', 'shop/api'], 2, /expected NAMESPACE\/NAME:PORT/],
    [['n1', 'shop/api:80', '--header', 'x'], 2, /expected NAME=VALUE/],
    [['n1', 'shop/api:99999'], 1, /port: expected a port number/],
    [['n1', 'Shop/api:80'], 1, /namespace: expected a DNS label/],
    [['n1', 'shop/a.b:80'], 1, /name: expected a DNS label/],
    [['n1', 'shop/api:80/a b'], 1, /path: expected a path/],
    [['nobody', 'shop/api:80'], 1, /there is no node nobody/],
  ])('%j is refused', async (args, code, error) => {
    const { cli, frames } = await rig();
    const ran = await cli(['connect', ...args]);
    expect(ran).toEqual({ code, out: '', err: expect.stringMatching(error) });
    expect(frames()).toEqual([]);
  });

  test('a node that is not connected is named', async () => {
    const { cli, node } = await rig();
    await node.close();
    const ran = await cli(['connect', n1, 'shop/api:80']);
    expect(ran).toMatchObject({ code: 1, err: expect.stringMatching(/node n1 is not connected/) });
  });
});
