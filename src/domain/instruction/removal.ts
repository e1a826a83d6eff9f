import type { Removal } from '../uninstall/model.js';

export const instructionRemoval: Removal = {
  capability: 'instruction',
  steps: () => [{ do: 'end_tasks', what: 'ends scripts and programs of instructions that still run' }],
};
