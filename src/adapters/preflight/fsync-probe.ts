import { mkdtemp, open, rm } from 'node:fs/promises';
import { join } from 'node:path';

const WRITES = 20;
const BLOCK = Buffer.alloc(4096);

/** Milliseconds of the slowest but one of 20 writes of 4 KiB that reach the disk: one may meet somebody else's. The file is gone again. */
export async function probeFsync(folder: string, signal: AbortSignal): Promise<number | undefined> {
  const own = await mkdtemp(join(folder, '.holdfast-preflight-'));
  try {
    const file = await open(join(own, 'probe'), 'wx', 0o600);
    try {
      const times: number[] = [];
      for (let write = 0; write < WRITES; write++) {
        signal.throwIfAborted();
        const start = performance.now();
        await file.write(BLOCK);
        await file.datasync();
        times.push(performance.now() - start);
      }
      return times.toSorted((a, b) => a - b).at(-2);
    } finally {
      await file.close();
    }
  } finally {
    await rm(own, { recursive: true, force: true });
  }
}
