import type { Clock } from "./clock.ts";

/** Resolves after the time, or as soon as the signal is aborted. */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const wake = () => {
      takeBack();
      signal.removeEventListener("abort", wake);
      resolve();
    };
    const takeBack = clock.schedule(delayMs, wake);
    signal.addEventListener("abort", wake);
  });
}
