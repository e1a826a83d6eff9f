import { connect } from 'node:net';

export interface LoadResult {
  readonly done: number;
  readonly failed: number;
  /** Answers by what was said. */
  readonly answers: ReadonlyMap<string, number>;
  readonly errors: ReadonlyMap<string, number>;
}

const TIMEOUT_MS = 10_000;

/** Opens a connection, sends a byte and reads to the end. */
export function ask(host: string, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect({ host, port });
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error('ETIMEDOUT')));
    socket.once('connect', () => socket.write('?'));
    socket.setEncoding('utf8');
    socket.on('data', (text) => {
      answer += text;
    });
    socket.once('end', () => (answer.endsWith('\n') ? resolve(answer.trim()) : reject(new Error('EMPTY'))));
    socket.once('error', reject);
  });
}

/** `next` says whether there is one more to do; `width` of them run at a time. */
export async function load(host: string, port: number, width: number, next: () => boolean): Promise<LoadResult> {
  const answers = new Map<string, number>();
  const errors = new Map<string, number>();
  let done = 0;
  const client = async () => {
    while (next()) {
      done++;
      await ask(host, port).then(
        (answer) => answers.set(answer, (answers.get(answer) ?? 0) + 1),
        (error: NodeJS.ErrnoException) => {
          const reason = error.code ?? error.message;
          errors.set(reason, (errors.get(reason) ?? 0) + 1);
        },
      );
    }
  };
  await Promise.all(Array.from({ length: width }, client));
  const failed = [...errors.values()].reduce((sum, count) => sum + count, 0);
  return { done, failed, answers, errors };
}

export function times(count: number): () => boolean {
  let left = count;
  return () => left-- > 0;
}
