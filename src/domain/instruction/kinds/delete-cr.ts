import { unbuilt } from './kind.js';

export const deleteCr = unbuilt({
  type: 'DELETE_CR',
  scheduling: { lanes: ['cr/*'], slot: 'work', deadlineMs: 120_000, repeat: 'repeat' },
});
