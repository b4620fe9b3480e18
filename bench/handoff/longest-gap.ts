/** The longest time between consecutive arrivals, of the gaps that end after an instant; all in milliseconds. */
export function longestGap(arrivals: readonly number[], afterMs: number): number {
  let longest = 0;
  for (const [at, arrival] of arrivals.entries()) {
    const before = arrivals[at - 1];
    if (before !== undefined && arrival > afterMs) longest = Math.max(longest, arrival - before);
  }
  return longest;
}
