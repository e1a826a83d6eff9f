/** A slip of the finger is one or two edits; more is another word. Short names allow one edit in three characters. */
const mostEdits = 2;

/** The name of `known` that was most likely meant by `name`, for "did you mean"; `undefined` when none is near. */
export function closest(name: string, known: Iterable<string>): string | undefined {
  const wanted = name.toLowerCase();
  let best: { readonly name: string; readonly edits: number } | undefined;
  for (const candidate of known) {
    const limit = Math.min(mostEdits, Math.ceil(candidate.length / 3));
    // Lengths alone say so, and unknown names may be long.
    if (Math.abs(candidate.length - wanted.length) > limit) continue;
    const edits = distance(wanted, candidate.toLowerCase());
    if (edits <= limit && (best === undefined || edits < best.edits)) best = { name: candidate, edits };
  }
  return best?.name;
}

/** Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours. */
function distance(a: string, b: string): number {
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const substitution = (last[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      let edits = Math.min((last[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, substitution);
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        edits = Math.min(edits, (beforeLast[column - 2] ?? 0) + 1);
      }
      current.push(edits);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length] ?? 0;
}
