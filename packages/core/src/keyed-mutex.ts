/** Runs work on the same key one after another, in the order of the calls. */
export class KeyedMutex<Key> {
  readonly #last = new Map<Key, Promise<unknown>>();

  run<T>(key: Key, work: () => Promise<T>): Promise<T> {
    const result = (this.#last.get(key) ?? Promise.resolve()).then(work);
    const end: Promise<void> = result.then(
      () => this.#forget(key, end),
      () => this.#forget(key, end),
    );
    this.#last.set(key, end);
    return result;
  }

  /** Resolves when no work on the key is running or waiting; never rejects. */
  async free(key: Key): Promise<void> {
    while (this.#last.has(key)) await this.#last.get(key);
  }

  #forget(key: Key, end: Promise<unknown>): void {
    if (this.#last.get(key) === end) this.#last.delete(key);
  }
}
