import type { Revision } from '../../domain/log/model.js';
import type { PlannedResource } from '../../domain/resource/plan.js';

export interface Answer {
  readonly revision: Revision;
  readonly resources: readonly PlannedResource[];
}

/** One apply of the greatest size, or many small ones: about 10 MB. */
const MOST_RESOURCES = 20_000;

/** What the newest requests came to, for callers that lost the answer and ask again. The oldest are forgotten first. */
export class RecentAnswers {
  readonly #answers = new Map<string, Answer>();
  #resources = 0;

  get(requestId: string): Answer | undefined {
    return this.#answers.get(requestId);
  }

  remember(requestId: string, answer: Answer): void {
    this.#forget(requestId);
    this.#answers.set(requestId, answer);
    this.#resources += answer.resources.length;
    for (const oldest of this.#answers.keys()) {
      if (this.#resources <= MOST_RESOURCES) break;
      this.#forget(oldest);
    }
  }

  #forget(requestId: string): void {
    this.#resources -= this.#answers.get(requestId)?.resources.length ?? 0;
    this.#answers.delete(requestId);
  }
}
