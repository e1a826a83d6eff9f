import { createHash } from 'node:crypto';
import type { Task, TaskId } from '../../src/ports/instruction/task-runner.js';

export function taskId(name: string): TaskId {
  return createHash('sha256').update(name).digest('hex') as TaskId;
}

/** A task by the name of `name`, with a minute of time. */
export function task(name: string, argv: Task['argv'], rest: Partial<Task> = {}): Task {
  return { id: taskId(name), argv, env: {}, cwd: '/', files: {}, timeoutMs: 60_000, maxOutputBytes: 1_000_000, ...rest };
}

/** Of `/bin/sh`, with the standard folders in its PATH. */
export function shell(name: string, script: string, rest: Partial<Task> = {}): Task {
  return task(name, ['/bin/sh', '-c', script], { env: { PATH: '/usr/bin:/bin' }, ...rest });
}
