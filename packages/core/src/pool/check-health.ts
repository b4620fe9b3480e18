import { abortError, type Clock } from "@sandpiper/protocol";

export interface CheckHealthOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** False if the check fails or takes too long; only an abort rejects. */
export function checkHealth(ask: () => Promise<boolean>, options: CheckHealthOptions): Promise<boolean> {
  const { clock, timeoutMs, signal } = options;
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      stop();
      reject(abortError(signal as AbortSignal, "checking an instance's health"));
    };
    const answer = (isHealthy: boolean) => {
      stop();
      resolve(isHealthy);
    };
    const cancelTimer = clock.schedule(timeoutMs, () => answer(false));
    const stop = () => {
      cancelTimer();
      signal?.removeEventListener("abort", onAbort);
    };
    if (signal?.aborted) return onAbort();
    signal?.addEventListener("abort", onAbort);
    Promise.try(ask).then(answer, () => answer(false));
  });
}
