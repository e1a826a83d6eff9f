import { expect, test } from 'vitest';
import { shownTo } from '../../../src/domain/admin/redact.js';

const secret = {
  kind: 'Secret',
  metadata: { name: 'tls' },
  data: { 'tls.key': 'c2VjcmV0' },
  stringData: { password: 'secret' },
  spec: { data: { token: 'secret' }, type: 'opaque' },
};

test('G1: a viewer sees the keys of a Secret, and no value, wherever they stand', () => {
  const shown = shownTo('viewer', secret);
  expect(shown).toEqual({
    kind: 'Secret',
    metadata: { name: 'tls' },
    data: { 'tls.key': '' },
    stringData: { password: '' },
    spec: { data: { token: '' }, type: 'opaque' },
  });
  expect(JSON.stringify(shown)).not.toMatch(/c2VjcmV0|"secret"/);
});

test.each(['operator', 'admin'] as const)('an %s sees it whole', (grade) => {
  expect(shownTo(grade, secret)).toBe(secret);
});

test('a value of another shape is no way around it', () => {
  expect(shownTo('viewer', { kind: 'Secret', data: 'secret', stringData: ['secret'], spec: null })).toEqual({
    ...{ kind: 'Secret', data: {}, stringData: { 0: '' }, spec: {} },
  });
});

test('everything else is shown as it is', () => {
  const service = { kind: 'Service', spec: { data: { a: 'b' } } };
  expect(shownTo('viewer', service)).toBe(service);
});
