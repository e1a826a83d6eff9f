import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { AuditHead } from '../../src/domain/audit/model.js';
import type { AuditLog } from '../../src/ports/audit/audit-log.js';
import { auditRecord } from '../support/audit-record.js';

/** A log on a disk that can be made to fail. */
export interface AuditedWorld {
  readonly log: AuditLog;
  /** From now on nothing can be written, until `mend`. */
  spoil(): Promise<void>;
  mend(): Promise<void>;
  /** Tags of all lines that are there, in order. */
  tags(): Promise<readonly string[]>;
  close(): Promise<void>;
}

const never = { signal: new AbortController().signal };

export function auditLogContract(name: string, make: () => Promise<AuditedWorld>): void {
  describe(`${name}: AuditLog`, () => {
    let world: AuditedWorld;
    beforeEach(async () => {
      world = await make();
    });
    afterEach(() => world.close());

    const append = (tag: string) => world.log.append(auditRecord(tag), never);

    test('has no head before the first line, and a higher one after each', async () => {
      await world.log.open(never);
      expect(world.log.head()).toBeUndefined();
      const heads: (AuditHead | undefined)[] = [];
      for (const tag of ['a', 'a', 'b']) {
        await append(tag);
        heads.push(world.log.head());
      }
      const digest = expect.stringMatching(/^[0-9a-f]{64}$/);
      expect(heads).toEqual([1n, 2n, 3n].map((sequence) => ({ sequence, digest })));
      expect(new Set(heads.map((head) => head?.digest)).size).toBe(3);
    });

    test('keeps the order of the calls, of many at once too', async () => {
      await world.log.open(never);
      const tags = Array.from({ length: 100 }, (_, i) => `t${i}`);
      await Promise.all(tags.map(append));
      expect(await world.tags()).toEqual(tags);
      expect(world.log.head()?.sequence).toBe(100n);
    });

    test('opened twice is opened once', async () => {
      await Promise.all([world.log.open(never), world.log.open(never)]);
      await append('a');
      await world.log.open(never);
      await append('b');
      expect(await world.tags()).toEqual(['a', 'b']);
    });

    test('H3: what cannot be written rejects, is a problem, and is no part of the log', async () => {
      await world.log.open(never);
      await append('before');
      const head = world.log.head();
      expect(world.log.problems()).toEqual([]);
      await world.spoil();
      await expect(append('lost')).rejects.toMatchObject({ code: 'audit.not_written' });
      await expect(append('lost too')).rejects.toMatchObject({ code: 'audit.not_written' });
      expect(world.log.head()).toEqual(head);
      expect(world.log.problems()).toMatchObject([{ subject: 'audit log' }]);
      await world.mend();
      await append('after');
      expect(world.log.problems()).toEqual([]);
      expect(await world.tags()).toEqual(['before', 'after']);
      expect(world.log.head()?.sequence).toBe(2n);
    });

    test('before it is opened, and after it was closed, nothing is appended', async () => {
      await expect(append('early')).rejects.toMatchObject({ code: 'audit.not_written' });
      await world.log.open(never);
      await append('a');
      await world.log.close();
      await expect(append('late')).rejects.toMatchObject({ code: 'audit.not_written' });
      await expect(world.log.open(never)).rejects.toMatchObject({ code: 'audit.not_written' });
      expect(await world.tags()).toEqual(['a']);
    });

    test('closing waits for what was appended; it is safe before opening, and twice', async () => {
      await world.log.open(never);
      const appended = [append('a'), append('b')];
      await world.log.close();
      await world.log.close();
      await Promise.all(appended);
      expect(await world.tags()).toEqual(['a', 'b']);
      await (await make()).log.close();
    });

    test('aborted calls reject with their reason and append nothing', async () => {
      const reason = new Error('never mind');
      const aborted = { signal: AbortSignal.abort(reason) };
      await expect(world.log.open(aborted)).rejects.toBe(reason);
      await world.log.open(never);
      await expect(world.log.append(auditRecord('x'), aborted)).rejects.toBe(reason);
      await append('a');
      expect(await world.tags()).toEqual(['a']);
    });
  });
}
