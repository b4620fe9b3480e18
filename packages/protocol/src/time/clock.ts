/** Time as the domain sees it; injected, so that tests own it. */
export interface Clock {
  /** Never goes back; its zero means nothing. */
  monotonicMs(): number;
  now(): Date;
  /** Calls back once, after the delay; what it returns takes the appointment back. */
  schedule(delayMs: number, callback: () => void): () => void;
}

/** Longer delays overflow the runtime's timers, which would then fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  now: () => new Date(),
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, Math.min(delayMs, MAX_TIMER_MS));
    return () => clearTimeout(timer);
  },
};
