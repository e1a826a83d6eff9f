import { describe, expect, test } from 'vitest';
import { objectsOf, pathInDocument } from '../../../src/domain/resource/manifest.js';

const list = (items: unknown, more: object = {}) => ({ apiVersion: 'holdfast/v1', kind: 'List', items, ...more });
const one = { kind: 'Service', metadata: { name: 'a' } };
const two = { kind: 'Endpoints', metadata: { name: 'b' } };

describe('the objects of a document', () => {
  test.each<[string, unknown, readonly unknown[]]>([
    ['one', one, [{ path: '', value: one }]],
    ['what is no mapping is judged by others', [one], [{ path: '', value: [one] }]],
    [
      'of a list',
      list([one, two]),
      [
        { path: 'items[0]', value: one },
        { path: 'items[1]', value: two },
      ],
    ],
    ['of an empty list', list([]), []],
    ['of a list in a list', list([list([one])]), [{ path: 'items[0].items[0]', value: one }]],
    ['an element that is nothing keeps its place', list([null, one]).items, [{ path: '', value: [null, one] }]],
    [
      'what the daemon adds is taken off, and nothing else',
      { ...one, status: { vip: 'x' }, metadata: { name: 'a', revision: '7', source: 's', labels: { source: 'mine' } } },
      [{ path: '', value: { ...one, metadata: { name: 'a', labels: { source: 'mine' } } } }],
    ],
    [
      'metadata that is no mapping stays',
      { kind: 'Service', metadata: 7 },
      [{ path: '', value: { kind: 'Service', metadata: 7 } }],
    ],
  ])('%s', (_, document, objects) => {
    expect(objectsOf(document)).toEqual({ objects });
  });

  test.each<[string, unknown, readonly unknown[]]>([
    ['without items', list(undefined), [{ path: 'items', message: 'expected a list of objects, found nothing' }]],
    ['with items that are none', list({ a: 1 }), [{ path: 'items', message: 'expected a list of objects, found a mapping' }]],
    ['of Kubernetes', list([], { apiVersion: 'v1' }), [{ path: 'apiVersion', message: 'expected holdfast/v1, found "v1"' }]],
    [
      'with other keys, below another list',
      list([list([], { metadata: {} })]),
      [{ path: 'items[0].metadata', message: 'unknown key; the keys here are apiVersion, kind, items' }],
    ],
  ])('a list %s', (_, document, problems) => {
    expect(objectsOf(document)).toEqual({ problems });
  });
});

test.each([
  ['', 'spec.ports[0]', 'spec.ports[0]'],
  ['items[3]', '', 'items[3]'],
  ['items[3]', 'spec.ports[0]', 'items[3].spec.ports[0]'],
  ['items[3]', '["a b"]', 'items[3]["a b"]'],
])('%j and %j are %j', (object, path, expected) => {
  expect(pathInDocument(object, path)).toBe(expected);
});
