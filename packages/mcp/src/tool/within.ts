/**
 * Waits for a promise for a limited time and returns whether it was fulfilled. Throws the promise's error, or the abort
 * reason.
 */
export async function within(timeoutMs: number, signal: AbortSignal, promise: Promise<unknown>): Promise<boolean> {
  signal.throwIfAborted();
  const { promise: ended, resolve, reject } = Promise.withResolvers<boolean>();
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  const timer = setTimeout(() => resolve(false), timeoutMs);
  try {
    return await Promise.race([ended, promise.then(() => true)]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
    // After the timeout the result is not used.
    promise.catch(() => {});
  }
}
