import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Tag, tag } from '../../../src/domain/instruction/model.js';
import { encodeBase64 } from '../../../src/domain/link/base64.js';
import { payloadOf } from '../../../src/domain/link/payload.js';
import {
  closedFrame,
  closeFrame,
  dataFrame,
  nodeFrame,
  openedFrame,
  openFrame,
  resizeFrame,
  serverFrame,
} from '../../../src/domain/session/frames.js';
import { hostOf, MAX_INPUT_BYTES } from '../../../src/domain/session/model.js';
import { readTarget } from '../../../src/domain/session/schema.js';

const id = tag('s-1') as Tag;
const target = { namespace: 'shop', name: 'api', port: 8080 };

describe('the target of a session', () => {
  test('is a service by its name, with what its handshake carries', () => {
    const headers = { Authorization: 'Bearer x', 'sec-websocket-protocol': 'tty, v2,tty', HOST: 'evil', Upgrade: 'h2c' };
    const read = readTarget({ ...target, target: 'SERVICE_WEBSOCKET', path: '/sh?x=1', headers, cols: 80, rows: 24, later: 1 });
    expect(read).toEqual({
      ok: true,
      target: {
        ...target,
        path: '/sh?x=1',
        headers: { authorization: 'Bearer x' },
        subprotocols: ['tty', 'v2'],
        size: { cols: 80, rows: 24 },
      },
    });
  });

  test.each(['', 'SERVICE_WEBSOCKET', 'STREAM_TARGET_SERVICE_WEBSOCKET', null, undefined])(
    'kind %j is the one there is',
    (kind) => {
      expect(readTarget({ ...target, target: kind, path: null, headers: null, cols: 0, rows: null })).toMatchObject({
        ok: true,
        target: { path: '', headers: {}, subprotocols: [], size: undefined },
      });
    },
  );

  test.each<[string, object]>([
    ['another kind', { target: 'TCP' }],
    ['a name with a dot', { name: 'evil.com' }],
    ['a name with another host in it', { name: 'a@evil' }],
    ['an empty name', { name: '' }],
    ['a name in capitals', { name: 'Api' }],
    ['a name of 64 characters', { name: 'a'.repeat(64) }],
    ['a namespace that leaves the cluster', { namespace: 'x.evil.com/' }],
    ['a namespace with a dash at its end', { namespace: 'x-' }],
    ['port 0', { port: 0 }],
    ['port 65536', { port: 65_536 }],
    ['a port as text', { port: '80' }],
    ['a path that becomes a part of the host', { path: '@evil.com/' }],
    ['a path with a line end', { path: '/a\r\nHost: x' }],
    ['a path with a space', { path: '/a b' }],
    ['a path with a fragment', { path: '/a#b' }],
    ['a path of 3,000 characters', { path: `/${'a'.repeat(3_000)}` }],
    ['a header that ends a line', { headers: { a: 'x\r\nHost: y' } }],
    ['a header without a name', { headers: { '': 'x' } }],
    ['a header that is no text', { headers: { a: 1 } }],
    ['65 headers', { headers: Object.fromEntries(Array.from({ length: 65 }, (_, number) => [`h${number}`, 'x'])) }],
    ['headers of 17 KiB', { headers: { a: 'x'.repeat(17 * 1024) } }],
    ['a subprotocol with a slash', { headers: { 'Sec-WebSocket-Protocol': 'a/b' } }],
    ['negative columns', { cols: -1, rows: 1 }],
  ])('%s is refused', (_, change) => {
    expect(readTarget({ ...target, ...change })).toMatchObject({ ok: false });
  });

  test('law: whatever is read dials nothing but a service of the cluster', () => {
    const text = fc.oneof(fc.string({ maxLength: 12 }), fc.constantFrom('a', 'a.b', '@', '/', 'x-y', '[::1]', '%2e', 'ａ'));
    fc.assert(
      fc.property(text, text, fc.integer(), text, (name, namespace, port, path) => {
        const read = readTarget({ name, namespace, port, path });
        if (!read.ok) return;
        const url = new URL(`ws://${hostOf(read.target)}:${read.target.port}${read.target.path}`);
        expect(url.hostname).toBe(`${name}.${namespace}.svc.cluster.local`);
        expect([url.username, url.password]).toEqual(['', '']);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('frames', () => {
  const read = readTarget({ ...target, path: '/x', headers: { 'Sec-WebSocket-Protocol': 'tty', a: 'b' }, cols: 9, rows: 8 });
  if (!read.ok) throw new Error(read.problem);

  test('what one side writes the other reads', () => {
    expect(serverFrame(openFrame(id, read.target))).toEqual({ frame: 'open', read });
    expect(serverFrame(dataFrame(id, encodeBase64(new Uint8Array([0, 255]))))).toEqual({
      frame: 'data',
      bytes: new Uint8Array([0, 255]),
    });
    expect(serverFrame(resizeFrame(id, { cols: 1, rows: 2 }))).toEqual({ frame: 'resize', size: { cols: 1, rows: 2 } });
    expect(serverFrame(closeFrame(id))).toEqual({ frame: 'close' });
    expect(nodeFrame(openedFrame(id))).toEqual({ frame: 'opened' });
    expect(nodeFrame(closedFrame(id, { reason: 'r', error: true }))).toEqual({
      frame: 'closed',
      end: { reason: 'r', error: true },
    });
    expect(nodeFrame({ type: 'ERROR', tag: id, jsonB64: 'UNKNOWN' })).toMatchObject({ end: { reason: 'UNKNOWN', error: true } });
  });

  test('what is malformed is neither data nor a size, and other types are nobody’s here', () => {
    expect(serverFrame({ type: 'STREAM_DATA', tag: id, jsonB64: 'a' })).toEqual({ frame: 'data', bytes: undefined });
    const most = encodeBase64(new Uint8Array(MAX_INPUT_BYTES + 1));
    expect(serverFrame({ type: 'STREAM_DATA', tag: id, jsonB64: most })).toEqual({ frame: 'data', bytes: undefined });
    for (const json of [{ cols: 0, rows: 1 }, { cols: 1 }, [], 'x', null]) {
      expect(serverFrame({ type: 'STREAM_RESIZE', tag: id, jsonB64: payloadOf(json) })).toEqual({
        frame: 'resize',
        size: undefined,
      });
    }
    expect(serverFrame({ type: 'OPEN_STREAM', tag: id, jsonB64: '' })).toMatchObject({ read: { ok: false } });
    expect(nodeFrame({ type: 'STREAM_CLOSED', tag: id, jsonB64: '!' })).toEqual({
      frame: 'closed',
      end: { reason: '', error: false },
    });
    expect([serverFrame({ type: 'X', tag: id, jsonB64: '' }), nodeFrame({ type: 'X', tag: id, jsonB64: '' })]).toEqual([
      undefined,
      undefined,
    ]);
  });
});
