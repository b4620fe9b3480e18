import { type Clock, systemClock } from "@sandpiper/protocol";

/** Time and randomness, injected so that tests control them. */
export interface Timing extends Pick<Clock, "monotonicMs" | "schedule"> {
  /** From 0 to just below 1. */
  random(): number;
}

export const systemTiming: Timing = {
  monotonicMs: systemClock.monotonicMs,
  schedule: systemClock.schedule,
  random: Math.random,
};
