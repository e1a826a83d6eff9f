import type { StatusProblem } from '../driving/operations.js';

/** Something that can be less than well while the node serves on. */
export interface ProblemSource {
  /** What is wrong now; empty when all is well. */
  problems(): readonly StatusProblem[];
}
