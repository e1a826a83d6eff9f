import { expect, test } from 'vitest';
import { logKey } from '../../../src/domain/log/model.js';
import { nodeReads } from '../../../src/domain/log/visibility.js';

test.each<[string, boolean]>([
  ['service/default/a', true],
  ['endpoints/default/a', true],
  ['vip/10.192.0.2', true],
  ['health/default/a/10.0.0.1:80', true],
  ['settings/vip-range', true],
  ['settings/anything', false],
  ['settings', false],
  ['secret/default/a', false],
  ['services/default/a', false],
  ['servic', false],
  ['instruction/node/1', false],
  ['token/1', false],
  ['ca/root', false],
  ['audit/1', false],
  ['node/other', false],
])('E14: %s is read by nodes: %s', (key, read) => {
  expect(nodeReads(logKey(key))).toBe(read);
});
