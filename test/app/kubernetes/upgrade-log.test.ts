import { expect, test } from 'vitest';
import { UpgradeLog } from '../../../src/app/kubernetes/upgrade-log.js';
import { contentOf, FakeSession } from '../../support/instruction-rig.js';

function made() {
  let tags = 0;
  const log = new UpgradeLog(() => `tag-${++tags}`);
  return { log, session: new FakeSession() };
}

test('each line goes out at once, in order, under a tag of its own', () => {
  const { log, session } = made();
  log.opened(session);
  log.say('a', 'info');
  log.say('b', 'warning');
  log.say('c', 'error');
  expect(session.dump()).toBe(
    [1, 2, 3].map((n) => `tag-${n} UpgradeNodeK8sLog {"message":"${' abc'[n]}","severity":${n}}`).join('\n'),
  );
  expect(log.received()).toBe(false);
});

test('without a link the newest 200 are kept for the next one', () => {
  const { log, session } = made();
  log.opened(session);
  log.closed();
  for (let n = 0; n < 10_000; n++) log.say(`line ${n}`, 'info');
  expect(session.sent).toEqual([]);
  const next = new FakeSession();
  log.opened(next);
  expect(next.sent).toHaveLength(200);
  expect(contentOf(next.sent[0] ?? { type: '', tag: '', jsonB64: '' })).toContain('"line 9800"');
  log.closed();
  log.opened(session);
  expect(session.sent).toEqual([]);
});

test('a message has 4096 bytes at most, in whole characters', () => {
  const { log, session } = made();
  log.opened(session);
  for (const text of [
    'ü'.repeat(5_000),
    '😀'.repeat(2_000),
    'x'.repeat(4_096),
    `\ud800${'a'.repeat(5_000)}`,
    '\u0000'.repeat(9_000),
  ])
    log.say(text, 'info');
  for (const message of session.sent) {
    const { message: text } = JSON.parse(contentOf(message));
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4_096);
    expect(Buffer.byteLength(text)).toBeGreaterThan(4_080);
    expect(text).not.toMatch(/\ud83d…/);
  }
});
