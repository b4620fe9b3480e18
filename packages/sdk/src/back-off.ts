const FIRST_DELAY_MS = 50;
const MAX_DELAY_MS = 2_000;

/** Doubles with each attempt up to a limit. The jitter spreads the reconnects of clients that were cut off together. */
export function backOffMs(attempt: number, random: () => number): number {
  const fullMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** attempt);
  return fullMs / 2 + (fullMs / 2) * random();
}
