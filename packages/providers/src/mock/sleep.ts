import type { Clock } from "@sandpiper/core";

/** Waits for some time of the mock's clock; returns early when aborted. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const stop = clock.schedule(delayMs, resolve);
    signal?.addEventListener(
      "abort",
      () => {
        stop();
        resolve();
      },
      { once: true },
    );
  });
}
