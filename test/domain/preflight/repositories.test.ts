import { expect, test } from 'vitest';
import { readSourceLines, readSourceParagraphs, releaseUrl } from '../../../src/domain/preflight/repositories.js';

const source = (uri: string, suite: string, isTrusted = false) => ({ file: 'f', uri, suite, isTrusted });

test.each([
  ['deb http://deb.test/debian bookworm main', [source('http://deb.test/debian', 'bookworm')]],
  ['  deb [arch=amd64 trusted=yes] https://own.test ./', [source('https://own.test', './', true)]],
  ['deb [trusted=no] http://deb.test a b', [source('http://deb.test', 'a')]],
  ['deb-src http://deb.test a b\n# deb http://deb.test a b\ndeb\n\0', []],
])('lines: %s', (text, expected) => {
  expect(readSourceLines('f', text)).toEqual(expected);
});

test.each([
  [
    'Types: deb deb-src\n# said\nURIs: http://deb.test http://two.test\nSuites: a\n b\nTrusted: yes\n',
    ['http://deb.test', 'http://two.test'].flatMap((uri) => [source(uri, 'a', true), source(uri, 'b', true)]),
  ],
  [
    'Types: deb\nURIs: http://x.test\nSuites: a\nEnabled: no\n\nTypes: deb\nURIs: http://y.test\nSuites: a\n',
    [source('http://y.test', 'a')],
  ],
  ['Types: deb-src\nURIs: http://x.test\nSuites: a\n', []],
])('paragraphs: %s', (text, expected) => {
  expect(readSourceParagraphs('f', text)).toEqual(expected);
});

test.each([
  [source('http://deb.test/debian', 'bookworm'), 'http://deb.test/debian/dists/bookworm/InRelease'],
  [source('http://deb.test/', './'), 'http://deb.test/./InRelease'],
  [source('http://deb.test', '/'), 'http://deb.test/InRelease'],
])('where the signed list of %o stands', (given, expected) => {
  expect(releaseUrl(given)).toBe(expected);
});
