/** A listener that may fail without stopping the node: what a sandbox or server sends can make Node.js throw. */
export function guarded<Args extends readonly unknown[]>(
  listener: (...args: Args) => unknown,
  onFailure: () => void,
): (...args: Args) => void {
  return (...args) => {
    try {
      const result = listener(...args);
      if (result instanceof Promise) result.catch(onFailure);
    } catch {
      onFailure();
    }
  };
}
