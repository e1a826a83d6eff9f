import { describe, expect, test } from 'vitest';
import type { ListenerId } from '../../src/domain/dataplane/model.js';
import type { ListenPortMemory } from '../../src/ports/dataplane/listen-port-memory.js';

const options = { signal: new AbortController().signal };
const ports = (entries: Readonly<Record<string, number>>) =>
  new Map(Object.entries(entries).map(([id, port]) => [id as ListenerId, port]));

/** Every ListenPortMemory must pass. `make` gives an empty one, the same for all calls of what it returns. */
export function listenPortMemoryContract(name: string, make: () => Promise<() => ListenPortMemory>): void {
  describe(`ListenPortMemory: ${name}`, () => {
    test('is empty at first', async () => {
      const open = await make();
      expect(await open().load(options)).toEqual(new Map());
    });

    test('holds all that was saved last, also for the next process', async () => {
      const open = await make();
      await open().save(ports({ 'default/a/http': 8080, 'default/b/http': 1 }), options);
      expect(await open().load(options)).toEqual(ports({ 'default/a/http': 8080, 'default/b/http': 1 }));
      await open().save(ports({ 'default/b/http': 65_535 }), options);
      expect(await open().load(options)).toEqual(ports({ 'default/b/http': 65_535 }));
      await open().save(new Map(), options);
      expect(await open().load(options)).toEqual(new Map());
    });

    test('keeps a copy', async () => {
      const memory = (await make())();
      const mine = ports({ 'default/a/http': 1 });
      await memory.save(mine, options);
      mine.clear();
      expect((await memory.load(options)).size).toBe(1);
    });

    test('aborted calls reject and save nothing', async () => {
      const memory = (await make())();
      const aborted = { signal: AbortSignal.abort() };
      await expect(memory.save(ports({ 'default/a/http': 1 }), aborted)).rejects.toThrow();
      await expect(memory.load(aborted)).rejects.toThrow();
      expect(await memory.load(options)).toEqual(new Map());
    });
  });
}
