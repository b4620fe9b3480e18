import type { Clock } from "@sandpiper/protocol";

/** An instant by both clocks of one node. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function currentMoment(clock: Clock): Moment {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.now().getTime() };
}

export function later(moment: Moment, byMs: number): Moment {
  return { monotonicMs: moment.monotonicMs + byMs, wallMs: moment.wallMs + byMs };
}

/** Either clock is enough: the monotonic one may stop while the machine sleeps, the other may be set back. */
export function isPast(moment: Moment, clock: Clock): boolean {
  return clock.monotonicMs() >= moment.monotonicMs || clock.now().getTime() >= moment.wallMs;
}
