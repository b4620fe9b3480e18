import type { Clock } from "@sandpiper/core";

/** Runs `work` at an interval, never twice at the same time. `work` must not reject. Returns a function that stops it. */
export function repeat(clock: Clock, intervalMs: number, work: () => Promise<void>): () => void {
  let isStopped = false;
  let cancel = () => {};
  const next = () => {
    if (!isStopped) cancel = clock.schedule(intervalMs, () => void work().then(next));
  };
  next();
  return () => {
    isStopped = true;
    cancel();
  };
}
