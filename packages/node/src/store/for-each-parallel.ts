/** Processes at most `parallel` items at a time. After a failure it starts no more items, waits for those in progress, and throws. */
export async function forEachParallel<T>(
  items: Iterable<T>,
  parallel: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items[Symbol.iterator]();
  let hasFailed = false;
  const worker = async () => {
    while (!hasFailed) {
      const { done, value } = queue.next();
      if (done) return;
      try {
        await work(value);
      } catch (thrown) {
        hasFailed = true;
        throw thrown;
      }
    }
  };
  const outcomes = await Promise.allSettled(Array.from({ length: parallel }, worker));
  const failure = outcomes.find((outcome) => outcome.status === "rejected");
  if (failure !== undefined) throw failure.reason;
}
