import { describe, expect, test } from 'vitest';
import { answerMsOf, checkExpiry, checkPayload, checkType } from '../../../src/domain/dispatch/request.js';

const invalid = (message: RegExp) =>
  expect.objectContaining({ code: 'dispatch.invalid', message: expect.stringMatching(message) });

describe('a request', () => {
  test.each(['GET_NODE_STATUS', 'RUN_REMOTE_SCRIPT', 'UPDATE_AGENT'])('%s can be sent', (type) => {
    expect(() => checkType(type)).not.toThrow();
  });

  test.each([
    ['GET_NODE_STATU', /did you mean GET_NODE_STATUS\?/],
    ['RESULT_ACK', /there is no instruction "RESULT_ACK"/],
    ['CANCEL', /no instruction/],
    ['', /expected one of SET_VPN_PEERS/],
  ])('%j cannot', (type, message) => {
    expect(() => checkType(type)).toThrow(invalid(message));
  });

  test('is a JSON object, or nothing', () => {
    expect(checkPayload('APPLY_CR', '')).toEqual({});
    expect(checkPayload('APPLY_CR', ' {"a": 1} ')).toEqual({ a: 1 });
    for (const json of ['[]', '1', 'null', '"x"']) expect(() => checkPayload('APPLY_CR', json)).toThrow(invalid(/JSON object/));
    expect(() => checkPayload('APPLY_CR', '{')).toThrow(invalid(/no JSON/));
    expect(() => checkPayload('APPLY_CR', '"\ud800"')).toThrow(invalid(/well-formed/));
  });

  test('is a list for kubectl', () => {
    expect(checkPayload('RUN_KUBECTL_COMMAND', '["get", "nodes"]')).toEqual({});
    for (const json of ['', '{}'])
      expect(() => checkPayload('RUN_KUBECTL_COMMAND', json)).toThrow(invalid(/JSON list of arguments/));
  });

  test('expires in a second to a week', () => {
    for (const ms of [1_000, 3_600_000, 604_800_000]) expect(() => checkExpiry(ms)).not.toThrow();
    for (const ms of [0, 999, 604_800_001, Number.NaN]) expect(() => checkExpiry(ms)).toThrow(invalid(/1s to 168h/));
  });

  test.each([
    ['GET_NODE_STATUS', {}, 30_000],
    ['RUN_REMOTE_SCRIPT', {}, 930_000],
    ['RUN_REMOTE_SCRIPT', { timeoutSeconds: 5 }, 35_000],
    ['RUN_REMOTE_SCRIPT', { timeoutSeconds: 99_999 }, 3_630_000],
    ['RUN_REMOTE_SCRIPT', { timeoutSeconds: 'x' }, 930_000],
    ['RUN_KUBECTL_COMMAND', { timeoutSeconds: 60 }, 90_000],
  ])('A14: the answer to %s %j takes at most %i ms', (type, payload, expected) => {
    expect(answerMsOf(type, payload)).toBe(expected);
  });
});
