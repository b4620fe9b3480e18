import type { PullProgress } from "@sandpiper/core";
import { unlessAborted } from "./unless-aborted.ts";

type Report = (progress: PullProgress) => void;
type Work<T> = (signal: AbortSignal, report: Report) => Promise<T>;

interface Pull<T> {
  readonly result: Promise<T>;
  readonly abort: AbortController;
  readonly listeners: Set<Report>;
  users: number;
}

interface JoinOptions {
  readonly signal: AbortSignal;
  readonly onProgress?: Report | undefined;
}

/** Downloads that concurrent callers share; a download ends early when its last caller aborts. */
export class SharedPulls<T> {
  readonly #running = new Map<string, Pull<T>>();

  async join(reference: string, work: Work<T>, { signal, onProgress }: JoinOptions): Promise<T> {
    signal.throwIfAborted();
    const pull = this.#running.get(reference) ?? this.#start(reference, work);
    const report: Report = (progress) => onProgress?.(progress);
    pull.users += 1;
    pull.listeners.add(report);
    try {
      return await unlessAborted(() => pull.result, signal);
    } finally {
      pull.listeners.delete(report);
      pull.users -= 1;
      if (pull.users === 0) {
        this.#forget(reference, pull);
        pull.abort.abort();
      }
    }
  }

  #start(reference: string, work: Work<T>): Pull<T> {
    const abort = new AbortController();
    const listeners = new Set<Report>();
    const result = work(abort.signal, (progress) => {
      for (const listener of listeners) listener(progress);
    });
    const pull = { result, abort, listeners, users: 0 };
    this.#running.set(reference, pull);
    // All waiting callers get the error; there are none after the last has aborted.
    const forget = () => this.#forget(reference, pull);
    result.then(forget, forget);
    return pull;
  }

  /** The next caller starts a new download. */
  #forget(reference: string, pull: Pull<T>): void {
    if (this.#running.get(reference) === pull) this.#running.delete(reference);
  }
}
