/** Enough to mend a document; one with thousands of mistakes has one cause. */
export const MAX_PROBLEMS = 20;
