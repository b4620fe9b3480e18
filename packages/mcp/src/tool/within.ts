/**
 * Waits for a promise, for so long. Answers whether it was fulfilled in time; what it rejects with is thrown, and so is an
 * abort.
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
    // Given up on: how it ends concerns nobody any more.
    promise.catch(() => {});
  }
}
