import { expect, test } from 'vitest';
import { ControlStoreSubsystem } from '../../../src/app/store/control-store-subsystem.js';
import type { OwnedControlStore } from '../../../src/ports/store/control-store.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';

test('the store is open while the agent runs', async () => {
  const seen: string[] = [];
  const store: OwnedControlStore = Object.assign(new FakeControlStore(), {
    open: async () => void seen.push('open'),
    close: async () => void seen.push('close'),
    problems: () => [],
  });
  const subsystem = new ControlStoreSubsystem(store);
  await subsystem.start(new AbortController().signal);
  await subsystem.ready();
  await subsystem.stop();
  expect(seen).toEqual(['open', 'close']);
});
