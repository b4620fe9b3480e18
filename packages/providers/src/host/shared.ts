/** Makes all calls share one run of the work; the next call after a failure runs it again. */
export function shared<Args extends readonly unknown[], T>(
  work: (...args: Args) => Promise<T>,
): (...args: Args) => Promise<T> {
  let result: Promise<T> | undefined;
  return (...args) => {
    result ??= work(...args).catch((error: unknown) => {
      result = undefined;
      throw error;
    });
    return result;
  };
}

/** Like `shared`, with one run for each key. */
export function sharedByKey<T>(work: (key: string) => Promise<T>): (key: string) => Promise<T> {
  const runs = new Map<string, () => Promise<T>>();
  return (key) => {
    const run = runs.get(key) ?? shared(() => work(key));
    runs.set(key, run);
    return run();
  };
}
