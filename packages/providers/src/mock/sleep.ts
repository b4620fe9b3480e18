import type { Clock } from "@sandpiper/core";

/** Waits for some time of the mock's clock; aborted it returns early. */
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
