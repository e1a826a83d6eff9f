import { describe, expect, test } from 'vitest';
import { ChurnLedger } from './support/churn-ledger.js';

/** Service `s` with the endpoints `a` and `b`, all there since 10. */
function ledger(): ChurnLedger {
  const result = new ChurnLedger();
  result.endpointLives('a', 10);
  result.endpointLives('b', 10);
  result.serviceChanges('s', ['a', 'b']);
  result.serviceChanged('s', ['a', 'b'], 10);
  return result;
}

/** What happens after 20, and the verdict on a connection that began at 20 and fails afterwards. */
const cases: readonly (readonly [name: string, verdict: string, happen: (ledger: ChurnLedger) => void])[] = [
  ['nothing happened', 'lost', () => {}],
  ['one endpoint dies', 'cut', (each) => each.endpointDies('a')],
  ['one endpoint has died', 'cut', (each) => each.endpointDied('a', 25)],
  [
    'one died and came back',
    'cut',
    (each) => {
      each.endpointDied('a', 25);
      each.endpointLives('a', 26);
    },
  ],
  [
    'both die',
    'without',
    (each) => {
      each.endpointDies('a');
      each.endpointDies('b');
    },
  ],
  ['both were replaced by one that lives since', 'without', (each) => replaced(each, ['c'])],
  ['one is withdrawn, the other lives', 'lost', (each) => replaced(each, ['b'])],
  [
    'one is withdrawn and dies',
    'cut',
    (each) => {
      replaced(each, ['b']);
      each.endpointDies('a');
    },
  ],
  ['another service loses an endpoint', 'lost', (each) => each.endpointDies('z')],
  ['the service is being deleted', 'without', (each) => each.serviceChanges('s', undefined)],
];

function replaced(each: ChurnLedger, endpoints: readonly string[]): void {
  each.endpointLives('c', 22);
  each.serviceChanges('s', endpoints);
  each.serviceChanged('s', endpoints, 25);
}

describe('who is to blame for a connection that failed', () => {
  test.for(cases)('%s: %s', ([, verdict, happen]) => {
    const each = ledger();
    happen(each);
    expect(each.judge('s', 20)).toBe(verdict);
  });

  test('a death before the connection began excuses nothing', () => {
    const each = ledger();
    each.endpointDied('a', 15);
    expect(each.judge('s', 20)).toBe('lost');
  });

  test('an endpoint that was dead when the connection began is none that lived', () => {
    const each = ledger();
    each.endpointDied('a', 15);
    each.endpointDied('b', 15);
    each.endpointLives('a', 21);
    expect(each.judge('s', 20)).toBe('without');
  });
});
