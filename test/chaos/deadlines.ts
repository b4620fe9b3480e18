import type { SchedulerLag } from "./scheduler-lag.ts";

/** A client that gives up this long after its request's deadline has hung itself. */
const GRACE_MS = 2000;
/** A request is counted apart if a program that wants to run waited for a processor for this share of its time. */
const STARVED_SHARE = 0.5;

export interface DeadlinesOptions {
  readonly lag: Pick<SchedulerLag, "totalMs">;
  readonly onMissed: (missed: string) => void;
}

/** Gives every request of a client a deadline, and counts those that neither succeed nor fail before it. */
export class Deadlines {
  readonly #options: DeadlinesOptions;
  #requests = 0;
  #missed = 0;
  #starved = 0;
  #longestMs = 0;

  constructor(options: DeadlinesOptions) {
    this.#options = options;
  }

  get counts() {
    return {
      requests: this.#requests,
      unanswered: this.#missed,
      unansweredWhileStarved: this.#starved,
      longestRequestMs: Math.round(this.#longestMs),
    };
  }

  /** Runs a request with a signal that aborts at its deadline. */
  async run<T>(what: string, deadlineMs: number, request: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { lag } = this.#options;
    const [startedAt, lagBeforeMs] = [performance.now(), lag.totalMs];
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(new Error(`${what}: not answered in ${deadlineMs} ms`)), deadlineMs);
    const hung = setTimeout(
      () => this.#miss(`${what} ignores its deadline`, deadlineMs, lagBeforeMs),
      deadlineMs + GRACE_MS,
    );
    this.#requests++;
    try {
      return await request(deadline.signal);
    } finally {
      clearTimeout(timer);
      clearTimeout(hung);
      this.#longestMs = Math.max(this.#longestMs, performance.now() - startedAt);
      if (deadline.signal.aborted) this.#miss(what, deadlineMs, lagBeforeMs);
    }
  }

  #miss(what: string, deadlineMs: number, lagBeforeMs: number): void {
    const { lag, onMissed } = this.#options;
    const lagMs = lag.totalMs - lagBeforeMs;
    if (lagMs > deadlineMs * STARVED_SHARE) this.#starved++;
    else {
      this.#missed++;
      onMissed(`${what}: no answer within ${deadlineMs} ms, of which programs waited ${lagMs} ms for a processor`);
    }
  }
}
