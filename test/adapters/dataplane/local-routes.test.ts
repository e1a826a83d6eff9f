import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addonPath } from '../../../src/adapters/dataplane/addon.js';

const namespace = `holdfast-routes-${process.pid}`;
const ip = (...args: string[]) =>
  execFileSync('ip', ['-n', namespace, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** What is ours in the namespace, as another program sees it. */
function routes(): readonly string[] {
  const lists = ['-4', '-6'].map((family) => ip(family, 'route', 'show', 'table', 'local', 'proto', '202'));
  return lists
    .join('')
    .split('\n')
    .flatMap((line) => (line === '' ? [] : [line.split(' ').slice(0, 4).join(' ')]));
}

/** In a process of its own inside the namespace; returns what was thrown. */
function set(prefixes: readonly unknown[]): string {
  const script = `
    const addon = require(${JSON.stringify(addonPath(process.env.HOLDFAST_ADDON))});
    try { addon.setLocalRoutes(${JSON.stringify(prefixes)}); } catch (error) { process.stdout.write((error.code ?? error.name) + ': ' + error.message); }`;
  return execFileSync('ip', ['netns', 'exec', namespace, process.execPath, '-e', script], { encoding: 'utf8' });
}

/** What a client in the namespace reads from a server that is bound to `address` there. */
function reached(address: string): string {
  const script = `
    const net = require('node:net');
    const server = net.createServer((socket) => socket.end('x')).listen(0, '${address}', () =>
      net.connect(server.address().port, '${address}').on('data', (text) => process.stdout.write(text)).on('close', () => server.close()));`;
  return execFileSync('ip', ['netns', 'exec', namespace, process.execPath, '-e', script], { encoding: 'utf8' });
}

describe.skipIf(process.getuid?.() !== 0)('local routes', () => {
  beforeAll(() => {
    execFileSync('ip', ['netns', 'add', namespace]);
    ip('link', 'set', 'lo', 'up');
  });
  afterAll(() => execFileSync('ip', ['netns', 'del', namespace]));

  test('are made, kept, exchanged and taken away; others stay', () => {
    ip('route', 'add', 'local', '10.77.0.0/16', 'dev', 'lo', 'proto', '203');
    expect(set(['10.192.0.0/16', 'fd00:5::/64'])).toBe('');
    expect(routes()).toEqual(['local 10.192.0.0/16 dev lo', 'local fd00:5::/64 dev lo']);
    expect(set(['10.192.0.0/16', 'fd00:5::/64'])).toBe('');
    expect(routes()).toHaveLength(2);
    expect(reached('10.192.3.4')).toBe('x');
    expect(set(['10.193.0.0/16'])).toBe('');
    expect(routes()).toEqual(['local 10.193.0.0/16 dev lo']);
    expect(set([])).toBe('');
    expect(routes()).toEqual([]);
    expect(ip('route', 'show', 'table', 'local', 'proto', '203')).toContain('local 10.77.0.0/16');
  });

  test('10,000 other routes in the table hide none of ours', () => {
    const batch = Array.from(
      { length: 10_000 },
      (_, index) => `route add local 10.78.${index >> 8}.${index & 255} dev lo proto 203`,
    );
    execFileSync('ip', ['-n', namespace, '-batch', '-'], { input: batch.join('\n') });
    expect(set(['10.192.0.0/16'])).toBe('');
    expect(set(['10.193.0.0/16'])).toBe('');
    expect(routes()).toEqual(['local 10.193.0.0/16 dev lo']);
  });

  test.each([
    [['10.0.0.0/33'], 'TypeError: prefixes must be strings such as 10.0.0.0/8'],
    [['10.0.0/8'], 'TypeError: prefixes must be strings such as 10.0.0.0/8'],
    [[7], 'TypeError: prefixes must be strings such as 10.0.0.0/8'],
    [['10.0.0.1/8'], 'EINVAL: add the route 10.0.0.1/8: Invalid argument'],
  ])('%j is refused', (prefixes, problem) => {
    expect(set(prefixes)).toBe(problem);
  });
});
