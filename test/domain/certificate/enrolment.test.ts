import { expect, test } from 'vitest';
import { decodeEnrolment, encodeEnrolment } from '../../../src/domain/certificate/enrolment.js';
import { hostPort, type PortNumber } from '../../../src/domain/kernel/network.js';
import { aid, nid } from '../../../src/domain/link/model.js';

const server = (text: string) => {
  const found = hostPort(text, 9192 as PortNumber);
  if (found === undefined) throw new Error(text);
  return found;
};

test('what is written is read again', () => {
  const file = { servers: [server('a.example'), server('[fd00::1]:1')], nid: nid('n1'), aid: aid('acme') };
  expect(encodeEnrolment(file)).toBe(
    '{\n  "servers": [\n    "a.example:9192",\n    "[fd00::1]:1"\n  ],\n  "nid": "n1",\n  "aid": "acme"\n}\n',
  );
  expect(decodeEnrolment(encodeEnrolment(file))).toEqual(file);
});

test('a server without a port has that of the mutual channel', () => {
  const text = '{"servers":["a.example"],"nid":"n1","aid":"acme"}';
  expect(decodeEnrolment(text)).toEqual({ servers: [server('a.example:9192')], nid: 'n1', aid: 'acme' });
});

test.each([
  '',
  '{',
  '[]',
  'null',
  '{}',
  '{"servers":[]}',
  '{"servers":"a"}',
  '{"servers":["a b"]}',
  '{"servers":["a"]}',
  '{"servers":["a",7],"nid":"n1","aid":"a"}',
  '{"servers":["a"],"nid":"-","aid":"a"}',
])('%j is none', (text) => {
  expect(decodeEnrolment(text)).toBeUndefined();
});
