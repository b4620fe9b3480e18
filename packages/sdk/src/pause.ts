import type { Timing } from "./timing.ts";

/** Resolves when the time has passed, or at once when the caller aborts. */
export function pause(
  delayMs: number,
  { timing, signal }: { readonly timing: Timing; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const cancel = timing.schedule(delayMs, done);
    signal?.addEventListener("abort", done, { once: true });
    if (signal?.aborted) done();
  });
}
