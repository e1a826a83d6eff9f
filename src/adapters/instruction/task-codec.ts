import { AgentError } from '../../domain/kernel/errors.js';
import type { Task } from '../../ports/instruction/task-runner.js';

const MAGIC = 'HFTASK1\n';
/** What the runner takes. */
const MAX_SIZE = 64 * 1024 * 1024;
const MAX_U32 = 2 ** 32 - 1;

/**
 * A task as native/runner/task_codec.h describes it. The runner checks everything again, and names what is wrong.
 * @throws AgentError `instruction.not_started` when it is larger than 64 MiB
 */
export function encodeTask(task: Task): Buffer {
  const parts = [
    u32(Math.min(task.timeoutMs, MAX_U32)),
    u32(Math.min(task.maxOutputBytes, MAX_U32)),
    ...string(task.cwd),
    ...strings(task.argv),
    ...strings(Object.entries(task.env).map(([name, value]) => `${name}=${value}`)),
    u32(Object.keys(task.files).length),
    ...Object.entries(task.files).flatMap(([name, content]) => [...string(name), ...string(content)]),
  ];
  const size = parts.reduce((sum, { length }) => sum + length, 0);
  if (size > MAX_SIZE) {
    throw new AgentError('instruction.not_started', {
      problem: `a task of ${size} bytes is too large, ${MAX_SIZE} are possible`,
    });
  }
  return Buffer.concat([Buffer.from(MAGIC), u32(size), ...parts]);
}

function strings(texts: readonly string[]): readonly Uint8Array[] {
  return [u32(texts.length), ...texts.flatMap(string)];
}

function string(text: string | Uint8Array): readonly Uint8Array[] {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  return [u32(bytes.length), bytes];
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(Math.ceil(value));
  return bytes;
}
