import { type InstructionKey, keyText } from '../../domain/instruction/model.js';
import type { TaskId } from '../../ports/instruction/task-runner.js';

/** The task of an instruction, the same in every process; the tasks of its steps begin alike. */
export function taskIdOf(key: InstructionKey, sha256: (text: string) => string): TaskId {
  return sha256(keyText(key)) as TaskId;
}

/** Half of a digest is long enough to tell one work from another. */
const WORK_DIGITS = 32;

/** A program that is a step of a longer work. */
export function stepTaskId(work: TaskId, step: string, sha256: (text: string) => string): TaskId {
  return `${work.slice(0, WORK_DIGITS)}${sha256(`${work} ${step}`).slice(WORK_DIGITS)}` as TaskId;
}

/** Whether it is the task of that work, or one of its steps. */
export function isOfWork(id: TaskId, work: TaskId): boolean {
  return id.slice(0, WORK_DIGITS) === work.slice(0, WORK_DIGITS);
}
