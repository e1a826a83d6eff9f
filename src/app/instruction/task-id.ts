import { type InstructionKey, keyText } from '../../domain/instruction/model.js';
import type { TaskId } from '../../ports/instruction/task-runner.js';

/** The only task that an instruction may have, the same in every process. */
export function taskIdOf(key: InstructionKey, sha256: (text: string) => string): TaskId {
  return sha256(keyText(key)) as TaskId;
}
