import { expect, test } from 'vitest';
import { MemoryOutbox } from '../../../src/adapters/outbox/memory-outbox.js';
import { NodeEvents } from '../../../src/app/fleet/node-events.js';
import { nid } from '../../../src/domain/link/model.js';
import { ZERO_SEQUENCE } from '../../../src/domain/outbox/model.js';
import { FakeClock } from '../../fakes/fake-clock.js';

const options = { signal: new AbortController().signal };

test('what nodes say are events of theirs, with all that is known and no empty parts', async () => {
  const outbox = new MemoryOutbox(16);
  const events = new NodeEvents(outbox, new FakeClock());
  events.status(nid('n1'), 'installing');
  const full = { type: 'install', message: 'no space', code: 'NA_DISK_FULL', cause: 'disk', remedy: 'free some', docsUrl: '' };
  events.nodelog(nid('n2'), { ...full, severity: 'failure' });
  events.nodelog(nid('n2'), { type: '', severity: 'warning', message: 'slow', code: '', cause: '', remedy: '', docsUrl: '' });
  const records = await outbox.read(ZERO_SEQUENCE, 10, options);
  expect(records.map(({ severity, message, labels }) => [severity, labels.subject, message])).toEqual([
    ['info', 'node n1', 'installing'],
    ['error', 'node n2', 'no space; (NA_DISK_FULL); cause: disk; what to do: free some'],
    ['warning', 'node n2', 'slow'],
  ]);
});
