/** Time, injected so that tests control it. */
export interface Clock {
  /** Never decreases; its zero is arbitrary. */
  monotonicMs(): number;
  now(): Date;
  /** Calls back once after the delay, at once if it is negative, unless the returned function is called before. */
  schedule(delayMs: number, callback: () => void): () => void;
}

/** Longer delays overflow the runtime's timers, which would then fire immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  now: () => new Date(),
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(delayMs, 0), MAX_TIMER_MS));
    return () => clearTimeout(timer);
  },
};
