import { AgentError } from '../../src/domain/kernel/errors.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { Backups } from '../../src/ports/driving/backups.js';

/** Gives the pieces that a test has put there; can fail behind them. */
export class FakeBackups implements Backups {
  pieces: readonly Uint8Array[] = [];
  fails = false;

  async *take(_call: { readonly withKey: boolean }, { signal }: CallOptions): AsyncIterable<Uint8Array> {
    for (const piece of this.pieces) {
      signal.throwIfAborted();
      yield piece;
    }
    if (this.fails) throw new AgentError('backup.not_made', { problem: 'told to fail' });
  }
}
