import type { Clock } from "./clock.ts";

/** Resolves after the delay, or as soon as the signal is aborted. */
export function pause(clock: Pick<Clock, "schedule">, delayMs: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const wake = () => {
      cancel();
      signal?.removeEventListener("abort", wake);
      resolve();
    };
    const cancel = clock.schedule(delayMs, wake);
    signal?.addEventListener("abort", wake);
  });
}
