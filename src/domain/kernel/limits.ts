/** Enough to mend a document; one with thousands of mistakes has one cause. */
export const MAX_PROBLEMS = 20;

/** Documents of one request: ten thousand services, each with an Endpoints object. */
export const MAX_DOCUMENTS = 20_000;
