import { expect, test } from 'vitest';
import { ServerSubsystem } from '../../../src/app/agent/server-subsystem.js';
import type { DrivingServer } from '../../../src/ports/driving/server.js';

test('a server serves from the start of its subsystem to its stop; what keeps it from starting is the reason', async () => {
  const journal: string[] = [];
  const server: DrivingServer = {
    start: async () => void journal.push('start'),
    stop: async () => void journal.push('stop'),
  };
  const subsystem = new ServerSubsystem('admin', server, () => journal.push('goodbye'));
  await subsystem.start();
  await subsystem.ready();
  await subsystem.stop();
  expect([subsystem.name, journal]).toEqual(['admin', ['start', 'goodbye', 'stop']]);
  const broken = new ServerSubsystem('admin', { ...server, start: () => Promise.reject(new Error('taken')) });
  await expect(broken.start()).rejects.toThrow('taken');
});
