/** Time and chance as the client sees them; injected, so that tests own them. */
export interface Timing {
  /** Never goes back; its zero means nothing. */
  monotonicMs(): number;
  /** Calls back once, after the delay; what it returns takes the appointment back. */
  schedule(delayMs: number, callback: () => void): () => void;
  /** From 0 to just below 1. */
  random(): number;
}

export const systemTiming: Timing = {
  monotonicMs: () => performance.now(),
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
};
