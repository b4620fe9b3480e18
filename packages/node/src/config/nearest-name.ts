/** The known name closest to a mistyped one; undefined if none is close. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const mostEdits = Math.max(1, Math.floor(name.length / 3));
  const ranked = known
    .map((candidate) => ({ candidate, edits: editsBetween(name.toLowerCase(), candidate.toLowerCase()) }))
    .sort((one, other) => one.edits - other.edits);
  return ranked.find(({ edits }) => edits <= mostEdits)?.candidate;
}

/** Damerau-Levenshtein distance: insertions, deletions, substitutions and swaps of neighbours. */
function editsBetween(from: string, to: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [row, letter] of [...from].entries()) {
    const current = [row + 1];
    for (let column = 0; column < to.length; column++) {
      const replaced = (previous[column] ?? 0) + (letter === to[column] ? 0 : 1);
      const isSwap = letter === to[column - 1] && from[row - 1] === to[column];
      const swapped = isSwap ? (beforePrevious[column - 1] ?? 0) + 1 : replaced;
      current.push(Math.min(replaced, swapped, (previous[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1));
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[to.length] ?? 0;
}
